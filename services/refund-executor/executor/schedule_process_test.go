package executor

import (
	"context"
	"errors"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/envelope"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxDeliveries is how often a task is handed out before it is a dead letter.
const maxDeliveries = 5

// delivery is a task on its way to an executor.
type delivery struct {
	message bus.Message
	count   int
}

// process is one executor: the real one, as a coroutine that goes on from one
// seam to the next when the schedule says so. One that was killed never goes
// on; a new one with the same name takes its place.
type process struct {
	w    *world
	name string
	x    *executor
	// work is the delivery in hand.
	work *delivery
	next func() (seam, bool)
	stop func()
	// stand is where it gives way; at is where it stands.
	yield func(seam) bool
	at    seam
	// verdict is what the schedule decided for where it stands.
	verdict verdict
	err     error
	// made: the call it waits for an answer to made a refund.
	made bool
}

// killed ends a coroutine from inside.
type killed struct{}

// start makes a new executor, as a start of its process does.
func (p *process) start() {
	cfg := p.w.order.cfg
	if p.w.bug.config != nil {
		p.w.bug.config(&cfg)
	}
	p.x = assemble(cfg, parts{
		store: p.w.store, provider: wire{p.w.provider, p}, approvers: people.registry, now: p.w.now, wait: p.wait, both: p.both,
	})
	p.x.bus = answers{p: p}
}

// begin takes a delivery in hand.
func (p *process) begin(d *delivery) {
	d.count++
	m := d.message
	m.Delivered, m.LastDelivery = d.count, d.count >= maxDeliveries
	p.work, p.err, p.made = d, nil, false
	p.next, p.stop = iter.Pull(func(yield func(seam) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(killed{}) {
				panic(r)
			}
		}()
		p.yield = yield
		p.err = p.x.handle(context.Background(), &m)
	})
	p.w.tell("%s takes %s of %s, delivery %d", p.name, m.Envelope.GetTaskId(), m.Envelope.GetCaseId(), d.count)
	p.step()
}

// resume lets it go on with what the schedule decides for where it stands.
func (p *process) resume() {
	p.verdict = p.w.decide(p.at)
	if p.verdict == dies {
		p.crash()
		return
	}
	if p.verdict != fine {
		p.w.tell("  %s at %s: %s", p.name, p.at, p.verdict)
	}
	p.step()
}

func (p *process) step() {
	p.w.running = p
	at, more := p.next()
	p.w.running = nil
	if p.at = at; !more {
		p.finish()
	}
}

// finish settles the delivery as the bus does.
func (p *process) finish() {
	d := p.work
	p.work = nil
	switch {
	case p.err == nil && p.w.decide(seamAcknowledge) != fine:
		p.w.saw[sawDuplicate] = true
		p.w.tell("  %s is done, and nobody knows", p.name)
		p.w.tasks = append(p.w.tasks, d)
	case p.err == nil:
		p.w.tell("  %s is done", p.name)
	case d.count < maxDeliveries && !malformed(d):
		p.w.tell("  %s gives it back: %v", p.name, p.err)
		p.w.tasks = append(p.w.tasks, d)
	default:
		p.w.saw[sawDeadLetter] = true
		p.w.tell("  dead letter: %v", p.err)
	}
}

// malformed reports whether the executor refuses a task for good.
func malformed(d *delivery) bool {
	_, _, err := read(&d.message)
	return err != nil
}

// crash kills it where it stands; what it had in hand is handed out again.
func (p *process) crash() {
	w := p.w
	w.tell("%s is killed at %s", p.name, p.at)
	switch {
	case p.at == seamAnswered && p.made:
		w.saw[sawCrashAfterCommit] = true
	case p.at == seamAsk:
		w.saw[sawCrashBeforeCall] = true
	}
	w.tasks = append(w.tasks, p.work)
	p.kill()
	p.start()
}

func (p *process) kill() {
	if p.work != nil {
		p.stop()
		p.work = nil
	}
}

// give stands at a seam until the schedule lets the process go on.
func (p *process) give(at seam) verdict {
	if !p.yield(at) {
		panic(killed{})
	}
	return p.verdict
}

func (p *process) wait(_ context.Context, d time.Duration) error {
	due := p.w.clock.Add(d)
	p.give(seamWait)
	if p.w.clock.Before(due) {
		p.w.pass(due.Sub(p.w.clock))
	}
	return nil
}

func (p *process) both(a, b func()) {
	if p.w.choose("which first", 1, 1) == 1 {
		a, b = b, a
	}
	a()
	b()
}

// answers is the executor's way to the cases.
type answers struct {
	records
	p *process
}

var errSend = errors.New("not sent")

func (a answers) Send(_ context.Context, _ string, env *amendsv1.Envelope, payload proto.Message, _ ...bus.PublishOption) (uint64, error) {
	w := a.p.w
	v := a.p.give(seamSend)
	if v == fails {
		return 0, errSend
	}
	if _, err := envelope.Seal(env, payload); err != nil {
		w.breaks("CONTRACT", "answer %T: %v", payload, err)
	}
	if r, ok := payload.(*amendsv1.EffectResult); ok {
		w.tell("  %s answers %s %s %s", a.p.name, env.GetCaseId(), className(r.GetClass()), r.GetReason())
		for _, one := range r.GetRefunds() {
			w.tell("    %s: %s %s %s", one.GetIdempotencyKey(), className(one.GetOutcome().GetClass()), one.GetOutcome().GetRefundId(), one.GetOutcome().GetReason())
		}
		w.sawAnswer(r)
	}
	if w.bug.answer != nil {
		w.bug.answer(payload)
	}
	if v == vanishes {
		w.saw[sawLostResult] = true
		return 1, nil
	}
	w.matter(env.GetCaseId()).receive(env, payload)
	if v == unsure {
		return 0, bus.ErrUncertain
	}
	return 1, nil
}
