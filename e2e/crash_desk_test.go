package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/roles"
)

// crashPatience bounds a whole run; an input that was in a killed process comes
// again after its AckWait.
const crashPatience = 2 * time.Minute

// place is where a process can be killed: a point, at one input of the service
// for a case, counted from 1 in the order the inputs came.
type place struct {
	service roles.Service
	point   string
	input   int
}

// crash is one case and where the process that handles it is killed.
type crash struct {
	place
	story *story
	// times is how often: the second time when the input comes again.
	times int
	// stays: nobody starts the process again.
	stays bool

	i int // the case's number in its desk
	// shot is closed when the process was killed for the first time, idle when
	// the case has to wait for a deadline.
	shot, idle chan struct{}

	killed []time.Time
	ended  time.Time
	found  finding
}

// crashDesk is a desk of which some services run as processes of their own,
// with somebody who kills them.
type crashDesk struct {
	*world
	// wire is what the executor reaches the provider by.
	wire  *wire
	files map[roles.Service]string

	mu sync.Mutex
	// plan is what is to happen, by case.
	plan map[string]*crash
	// inputs are the ids of what each service was given for a case, in order.
	inputs map[string][]string
	// passed are the places the cases went through.
	passed  map[string][]place
	running []*victim
	closed  bool
	// plain: nothing is sent twice, so that the places passed are those of first
	// deliveries.
	plain bool
}

// victim is a process that may be killed.
type victim struct {
	*process
	service roles.Service
	hits    []*crash // the cases at whose places it was killed
	stays   bool
}

// apart are the services a crash desk runs as processes.
var apart = []roles.Service{roles.Gateway, roles.Orchestrator, roles.RefundExecutor}

// startCrashDesk starts a desk and its processes; replicas is how many
// orchestrators there are.
func startCrashDesk(t *testing.T, replicas int) *crashDesk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), crashPatience)
	t.Cleanup(cancel)
	desk, err := allinone.Start(ctx, allinone.Options{Dir: t.TempDir(), Operator: true, Unlimited: true, NoSync: true, Apart: apart, GatewayListen: freeAddr(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = desk.Close() })
	d := &crashDesk{
		world: &world{Desk: desk, t: t, ctx: ctx}, plan: map[string]*crash{}, inputs: map[string][]string{}, passed: map[string][]place{},
	}
	t.Cleanup(d.neverMoreThanCaptured)
	if d.gateway, d.staff, err = desk.Clients(64); err != nil {
		t.Fatal(err)
	}
	if d.files, err = desk.WriteConfigs(t.TempDir(), func(roles.Service) string { return "127.0.0.1:0" }); err != nil {
		t.Fatal(err)
	}
	d.tap()
	t.Cleanup(d.end)
	for _, s := range apart {
		count := 1
		if s == roles.Orchestrator {
			count = replicas
		}
		for range count {
			if err := d.spawn(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// tap puts the wire into the executor's configuration.
func (d *crashDesk) tap() {
	d.t.Helper()
	d.wire = newWire(d.t, d.SandboxURL)
	file := d.files[roles.RefundExecutor]
	text, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	if n := strings.Count(string(text), d.SandboxURL); n != 1 {
		d.t.Fatalf("the executor's configuration names the provider %d times", n)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), d.SandboxURL, d.wire.URL, 1)), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// spawn starts a service and everything that watches it.
func (d *crashDesk) spawn(s roles.Service) error {
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	hear, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	v := &victim{process: &process{cmd: exec.Command(os.Args[0], "--config", d.files[s]), ended: make(chan struct{})}, service: s}
	v.cmd.Env = append(os.Environ(), actAs+"="+string(s))
	v.cmd.Stdout, v.cmd.Stderr = v, v
	v.cmd.ExtraFiles = []*os.File{say, hear}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errors.Join(said.Close(), say.Close(), hear.Close(), tell.Close())
	}
	err = v.cmd.Start()
	_ = say.Close() // the child has its own
	_ = hear.Close()
	if err != nil {
		return errors.Join(err, said.Close(), tell.Close())
	}
	d.running = append(d.running, v)
	go d.listen(v, said, tell)
	return nil
}

// listen hears which points a process reaches, and lets it go on or kills it
// there. When it has ended it is started again.
func (d *crashDesk) listen(v *victim, said, tell *os.File) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		var point, caseID, message string
		if _, err := fmt.Sscan(lines.Text(), &point, &caseID, &message); err != nil {
			d.t.Errorf("%s said %q: %v", v.service, lines.Text(), err)
		}
		if d.reached(v, point, caseID, message) {
			_ = v.cmd.Process.Kill() // SIGKILL; it waits for our answer and never gets it
			continue
		}
		_, _ = tell.Write([]byte{'\n'}) // it may have ended
	}
	v.err = v.cmd.Wait()
	_ = said.Close()
	_ = tell.Close()
	close(v.ended)
	d.mu.Lock()
	for _, c := range v.hits {
		if len(c.killed) == 1 {
			close(c.shot)
		}
	}
	gone := d.closed || v.stays
	if !d.closed && (v.hits == nil || !killedBy(v.err, syscall.SIGKILL)) {
		d.t.Errorf("%s ended by itself: %v\n%s", v.service, v.err, v.log())
	}
	d.mu.Unlock()
	if gone {
		return
	}
	if err := d.spawn(v.service); err != nil {
		d.t.Errorf("start %s again: %v", v.service, err)
	}
}

func killedBy(err error, s syscall.Signal) bool {
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := e.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == s
}

// reached notes a place and says whether the process dies there.
func (d *crashDesk) reached(v *victim, point, caseID, message string) (die bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := string(v.service) + " " + caseID
	at := slices.Index(d.inputs[key], message)
	if at < 0 {
		at = len(d.inputs[key])
		d.inputs[key] = append(d.inputs[key], message)
	}
	here := place{v.service, point, at + 1}
	if !slices.Contains(d.passed[caseID], here) {
		d.passed[caseID] = append(d.passed[caseID], here)
	}
	c := d.plan[caseID]
	if c != nil && c.place == here && len(c.killed) < c.times && !slices.Contains(v.hits, c) {
		v.stays = v.stays || c.stays
		c.killed = append(c.killed, time.Now())
		v.hits = append(v.hits, c)
	}
	return v.hits != nil // who stands anywhere in it dies with it
}

// end kills what still runs.
func (d *crashDesk) end() {
	d.mu.Lock()
	d.closed = true
	running := slices.Clone(d.running)
	d.mu.Unlock()
	for _, v := range running {
		_ = v.cmd.Process.Kill() // it may have ended
		<-v.ended
	}
}

// apartBy is how far apart cases are begun that wait for a deadline: a kill for
// one of them is not to meet the next where it cannot be told.
const apartBy = time.Second

// waits has the next case begun while this one waits for a deadline.
func (d *crashDesk) waits(i int) {
	d.mu.Lock()
	c := d.plan[caseID(i)]
	d.mu.Unlock()
	time.AfterFunc(apartBy, func() { close(c.idle) })
}

// play runs the cases of a plan, each begun when the process was killed for the
// one before, and gives what became of them. Cases whose crash does not come
// are reported.
func (d *crashDesk) play(plan []*crash) {
	d.t.Helper()
	var running sync.WaitGroup
	if prepare := plan[0].story.prepare; prepare != nil {
		prepare(d)
	}
	for i, c := range plan {
		c.i, c.shot, c.idle = i, make(chan struct{}), make(chan struct{})
		if err := d.Provider.Load(d.ctx, c.story.ledger(i)); err != nil {
			d.t.Fatal(err)
		}
		d.mu.Lock()
		d.plan[caseID(i)] = c
		d.mu.Unlock()
		over := make(chan struct{})
		running.Go(func() {
			defer close(over)
			if err := c.story.play(d, i); err != nil {
				d.t.Errorf("%s: %v", c.name(), err)
			}
			c.ended = time.Now()
		})
		select {
		case <-c.shot:
		case <-c.idle:
		case <-over:
		}
	}
	running.Wait()
	d.quiet()
	d.judge(plan)
}
