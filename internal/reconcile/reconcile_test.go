package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := reconcile.Defaults()
	good.Tenants = []string{"acme-in", "globex"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*reconcile.Config){
		"reconcile.tenants: not a valid":                     func(c *reconcile.Config) { c.Tenants = []string{"acme.>"} },
		"reconcile.tenants: not a valid identifier: \"all\"": func(c *reconcile.Config) { c.Tenants = []string{"all"} },
		"reconcile.tenants: acme-in is listed":               func(c *reconcile.Config) { c.Tenants = []string{"acme-in", "acme-in"} },
		"reconcile.every: want at least 1m":                  func(c *reconcile.Config) { c.Every = time.Second },
		"reconcile.every: want at most 168h":                 func(c *reconcile.Config) { c.Every = 1000 * time.Hour },
		"reconcile.window: 1m0s":                             func(c *reconcile.Config) { c.Window = time.Minute },
		"reconcile.grace: -1ns":                              func(c *reconcile.Config) { c.Grace = -1 },
		"reconcile.in_doubt: 1m0s, want 5m0s":                func(c *reconcile.Config) { c.InDoubt = time.Minute },
		"reconcile.poll: 0s":                                 func(c *reconcile.Config) { c.Poll = 0 },
		"reconcile.max_orders: 0, want 1 to 10000":           func(c *reconcile.Config) { c.MaxOrders = 0 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func finding(n int) *amendsv1.EffectFinding {
	return &amendsv1.EffectFinding{
		FindingId: fmt.Sprintf("find-%d", n), Code: "refund_without_intent", Tenant: "acme-in", OrderId: "8472", SeenAt: timestamppb.New(time.Unix(1, 0)),
		Records: []*amendsv1.FindingRecord{{Source: "provider", Kind: "refund", Id: strings.Repeat("r", 160)}},
	}
}

// A finding has one message, whenever it is found again, and one case.
func TestFindingsHaveOneMessage(t *testing.T) {
	t.Parallel()
	a, b := finding(1), finding(1)
	b.SeenAt = timestamppb.New(time.Unix(1e9, 0))
	id := func(f *amendsv1.EffectFinding) string {
		return reconcile.Envelope(f, reconcile.CaseOf(f), roles.RefundExecutor).GetMessageId()
	}
	if id(a) != id(b) || id(a) == id(finding(2)) || reconcile.CaseOf(a) != "fnd-1" {
		t.Errorf("%s, %s, %s", id(a), id(b), reconcile.CaseOf(a))
	}
	b.AboutCaseId = "req-8472"
	if reconcile.CaseOf(b) != "req-8472" {
		t.Errorf("case %s", reconcile.CaseOf(b))
	}
}

// served is a server that compares by a function, on the executor's grants.
func served(t *testing.T, b *bustest.Broker, clock func() time.Time, compare func(reconcile.Run, *reconcile.Report), told ...func(context.Context, *amendsv1.ReconciliationReport)) *bus.Conn {
	t.Helper()
	cfg := reconcile.Defaults()
	cfg.Tenants, cfg.Every, cfg.Poll = []string{"acme-in"}, time.Hour, 5*time.Millisecond
	o := reconcile.Options{
		Config: cfg, Service: roles.RefundExecutor, Bus: b.Connect(roles.RefundExecutor), Now: clock,
		Time:    func(context.Context) (time.Time, error) { return clock(), nil },
		Compare: func(_ context.Context, run reconcile.Run, r *reconcile.Report) { compare(run, r) },
	}
	for _, d := range told {
		o.Done = d
	}
	s := reconcile.New(o)
	running, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Serve(running); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); done.Wait() })
	return b.Connect(roles.Console)
}

func request(t *testing.T, c *bus.Conn, run, tenant string) {
	t.Helper()
	data, err := proto.Marshal(&amendsv1.ReconcileRequest{RunId: run, Tenant: tenant, By: "sam", At: timestamppb.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), subject.Reconcile("acme-in"), data); err != nil {
		t.Fatal(err)
	}
}

func report(t *testing.T, c *bus.Conn, run string) *amendsv1.ReconciliationReport {
	t.Helper()
	r := new(amendsv1.ReconciliationReport)
	bustest.Await(t, "the report of "+run, func() bool {
		m, err := c.LastDirect(t.Context(), roles.StreamReports, subject.Report(string(roles.RefundExecutor), "acme-in", run))
		return err == nil && proto.Unmarshal(m.Data, r) == nil
	})
	return r
}

// A report stays within a message, whatever was found, and counts the rest.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	at := time.Now().Truncate(time.Hour).Add(30 * time.Minute)
	b := bustest.Desk(t, bustest.Options{})
	c := served(t, b, func() time.Time { return at }, func(_ reconcile.Run, r *reconcile.Report) {
		for n := range 2000 {
			r.Found(finding(n % 1500))
		}
		r.Incomplete("first")
		r.Incomplete("second")
	})
	r := report(t, c, fmt.Sprintf("scheduled-%d", at.Truncate(time.Hour).Unix()))
	if len(r.GetFindings()) != reconcile.MaxFindings || r.GetOmitted() != 1000 || r.GetIncomplete() != "first" || proto.Size(r) > 512<<10 {
		t.Errorf("%d findings, %d omitted, %s, %d bytes", len(r.GetFindings()), r.GetOmitted(), r.GetIncomplete(), proto.Size(r))
	}
}

// A request is carried out once, one that is not understood never, and one that
// came long ago not any more.
func TestRequests(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	runs := make(chan string, 16)
	c := served(t, b, time.Now, func(run reconcile.Run, _ *reconcile.Report) { runs <- run.ID })
	if first := <-runs; !strings.HasPrefix(first, "scheduled-") {
		t.Errorf("the first run is %s", first)
	}
	request(t, c, "run-1", "globex") // on another tenant's subject
	request(t, c, "run-2", "acme-in")
	if got := <-runs; got != "run-2" {
		t.Errorf("run %s", got)
	}
	report(t, c, "run-2")
	// Another process finds the request an hour later.
	late := make(chan string, 16)
	served(t, b, func() time.Time { return time.Now().Add(time.Hour) }, func(run reconcile.Run, _ *reconcile.Report) { late <- run.ID })
	if first := <-late; !strings.HasPrefix(first, "scheduled-") {
		t.Errorf("an old request was carried out as %s", first)
	}
	if r := report(t, c, "run-2"); r.GetIncomplete() != "" {
		t.Errorf("the report of the run that was carried out is now %v", r)
	}
}

// Whoever asks when nobody is there is told, later, that it came to nothing. A
// request may wait behind a whole run.
func TestARequestTooOldIsAnswered(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Console)
	request(t, c, "run-1", "acme-in")
	runs := make(chan string, 16)
	served(t, b, func() time.Time { return time.Now().Add(reconcile.RequestAge + time.Minute) }, func(run reconcile.Run, _ *reconcile.Report) { runs <- run.ID })
	if first := <-runs; !strings.HasPrefix(first, "scheduled-") {
		t.Errorf("carried out as %s", first)
	}
	if r := report(t, c, "run-1"); r.GetIncomplete() != reconcile.ReasonTooOld || r.GetFinishedAt() == nil {
		t.Errorf("report %v", r)
	}
	request(t, c, "run-2", "acme-in")
	served(t, b, func() time.Time { return time.Now().Add(16 * time.Minute) }, func(run reconcile.Run, _ *reconcile.Report) { runs <- run.ID })
	for run := range runs {
		if run == "run-2" {
			break
		}
	}
}

// What one replica found stays when another comes to the same run after it and
// finds nothing any more, and so does why it missed something.
func TestAReportTakesNothingBack(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Console)
	request(t, c, "run-1", "acme-in")
	ended := make(chan *amendsv1.ReconciliationReport, 16)
	replica := func(compare func(*reconcile.Report)) *amendsv1.ReconciliationReport {
		served(t, b, time.Now, func(run reconcile.Run, r *reconcile.Report) {
			if run.ID == "run-1" {
				compare(r)
			}
		}, func(_ context.Context, r *amendsv1.ReconciliationReport) {
			if r.GetRunId() == "run-1" {
				ended <- r
			}
		})
		<-ended
		return report(t, c, "run-1")
	}
	r := replica(func(r *reconcile.Report) { r.Found(finding(1)); r.Count(5, 4, 3, 2) })
	if len(r.GetFindings()) != 1 || r.GetOrders() != 5 || r.GetUpdated() != 2 || r.GetIncomplete() != "" {
		t.Errorf("the first: %v", r)
	}
	r = replica(func(r *reconcile.Report) {
		r.Found(finding(1))
		r.Found(finding(2))
		r.Incomplete("timeout")
		r.Count(6, 0, 0, 0)
	})
	if len(r.GetFindings()) != 2 || r.GetOrders() != 6 || r.GetUpdated() != 2 || r.GetIncomplete() != "timeout" {
		t.Errorf("the second: %v", r)
	}
	if r = replica(func(*reconcile.Report) {}); len(r.GetFindings()) != 2 || r.GetIncomplete() != "timeout" {
		t.Errorf("the third, who finds nothing: %v", r)
	}
}

// A run that was cut off after it kept what it found is not finished, and who
// does it again does not lose it.
func TestWhatWasKeptOutlivesACrash(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.Console)
	request(t, c, "run-1", "acme-in")
	done := make(chan struct{})
	release := make(chan struct{})
	served(t, b, time.Now, func(run reconcile.Run, r *reconcile.Report) {
		if run.ID != "run-1" {
			return
		}
		r.Found(finding(1))
		if err := r.Keep(t.Context()); err != nil {
			t.Error(err)
		}
		close(done)
		<-release
	})
	defer close(release)
	<-done
	if r := report(t, c, "run-1"); len(r.GetFindings()) != 1 || r.GetFinishedAt() != nil {
		t.Errorf("kept %v", r)
	}
	served(t, b, time.Now, func(reconcile.Run, *reconcile.Report) {})
	bustest.Await(t, "the finished report", func() bool { return report(t, c, "run-1").GetFinishedAt() != nil })
	if r := report(t, c, "run-1"); len(r.GetFindings()) != 1 {
		t.Errorf("finished as %v", r)
	}
}

// Ages are of the broker's clock; a process whose own is another one cannot
// vouch for what it dated itself.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  time.Duration
		fail error
		want string
	}{
		"alike": {}, "within the grace": {own: -4 * time.Minute}, "behind": {own: -6 * time.Minute, want: reconcile.ReasonClock},
		"ahead": {own: 6 * time.Minute, want: reconcile.ReasonClock}, "nobody knows": {fail: bus.ErrUnavailable, want: reconcile.ReasonClock},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Desk(t, bustest.Options{})
			cfg := reconcile.Defaults()
			cfg.Tenants, cfg.Every = []string{"acme-in"}, time.Hour
			at := time.Now()
			ended := make(chan *amendsv1.ReconciliationReport, 1)
			s := reconcile.New(reconcile.Options{
				Config: cfg, Service: roles.RefundExecutor, Bus: b.Connect(roles.RefundExecutor),
				Now: func() time.Time { return at.Add(c.own) }, Time: func(context.Context) (time.Time, error) { return at, c.fail },
				Compare: func(_ context.Context, run reconcile.Run, _ *reconcile.Report) {
					if c.fail == nil && !run.At.Equal(at) {
						t.Errorf("judged by %s, the broker has %s", run.At, at)
					}
				},
				Done: func(_ context.Context, r *amendsv1.ReconciliationReport) { ended <- r },
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _ = s.Serve(ctx) }()
			if r := <-ended; r.GetIncomplete() != c.want {
				t.Errorf("report %v, want %q", r, c.want)
			}
		})
	}
}

// Without a tenant nothing is ever compared, and the log says so at the start.
func TestScheduleWithoutTenants(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := reconcile.Defaults()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := reconcile.New(reconcile.Options{
		Config: cfg, Service: roles.RefundExecutor, Bus: bustest.Desk(t, bustest.Options{}).Connect(roles.RefundExecutor), Now: time.Now,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := s.Serve(ctx); err != nil || !strings.Contains(log.String(), "no tenant is reconciled") {
		t.Errorf("%v, logged %q", err, log.String())
	}
}
