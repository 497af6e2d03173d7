package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

const (
	theTenant = "acme-in"
	theOrder  = "8472"
)

var dawn = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

// world is one order and everybody around it: executors, the effect store, the
// provider, the cases, people and the clock. Nothing in it happens by itself.
// Exactly one thing happens at a time, and the tape says which.
type world struct {
	tape tape
	// calm: faults have ended, and everything goes on as it should.
	calm  bool
	clock time.Time
	order terms
	bug   bug

	records  *effectstore.Memory
	store    effectstore.Store
	bank     *providertest.Memory
	provider provider.Provider
	// fate is what happens to the call that is being made.
	fate providertest.Fault
	// flying are the moments by which late calls have arrived, oldest first.
	flying []time.Time

	processes []*process
	running   *process
	tasks     []*delivery
	letters   []*letter
	matters   []*matter
	// unopened are customers who have not written yet.
	unopened []*matter
	stopped  map[string]bool

	seq    int
	signed []signature
	// actions are what cases asked for, by their hash.
	actions map[string]*amendsv1.ActionRecord
	known   map[string]amendsv1.RefundStatus
	facts   []fact
	// history is every version of the entry, in the end.
	history []*amendsv1.EffectEntry
	story   []line
	saw     map[string]bool
	broken  *breach
}

// line is one thing that happened, for people.
type line struct {
	at     time.Time
	format string
	args   []any
}

func newWorld(tp tape, b bug) *world {
	w := &world{tape: tp, bug: b, clock: dawn, stopped: map[string]bool{}, actions: map[string]*amendsv1.ActionRecord{}, known: map[string]amendsv1.RefundStatus{}, saw: map[string]bool{}}
	w.order = drawTerms(w)
	if b.terms != nil {
		b.terms(&w.order)
	}
	w.records = effectstore.NewMemory(effectstore.WithClock(w.now), effectstore.WithFault(w.strike))
	w.store = w.records
	if b.store != nil {
		w.store = b.store(w, w.records)
	}
	w.bank = providertest.NewMemory(w.now, w.order.promises)
	if w.order.lax {
		w.bank.Lax()
	}
	w.bank.SetFault(func(providertest.Call) providertest.Fault { return w.fate })
	w.bank.Load(theTenant, w.order.order)
	w.provider = w.bank
	if b.provider != nil {
		w.provider = b.provider(w, w.bank)
	}
	for i := range 1 + w.choose("executors", 2, 3, 2) {
		p := &process{w: w, name: fmt.Sprintf("executor %d", i+1)}
		p.start()
		w.processes = append(w.processes, p)
	}
	for i := range 1 + w.choose("cases", 3, 4, 3) {
		w.unopened = append(w.unopened, newMatter(w, i+1))
	}
	w.openNext()
	return w
}

func (w *world) now() time.Time { return w.clock }

// close lets nobody go on.
func (w *world) close() {
	for _, p := range w.processes {
		p.kill()
	}
}

// pick asks the tape for one of n; when all is calm it is the first.
func (w *world) pick(n int, what string) int {
	if n <= 1 || w.calm {
		return 0
	}
	return w.tape.pick(n, what)
}

// choose asks the tape for an index by weight.
func (w *world) choose(what string, weights ...int) int {
	sum := 0
	for _, n := range weights {
		sum += n
	}
	n := w.pick(sum, what)
	for i, weight := range weights {
		if n -= weight; n < 0 {
			return i
		}
	}
	return 0
}

func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, line{w.clock, format, args})
}

// note keeps a fact for the judge.
func (w *world) note(f fact) {
	f.at, f.by = w.clock, w.running
	w.facts = append(w.facts, f)
}

// aside does something that is no step of any executor.
func (w *world) aside(do func()) {
	p := w.running
	w.running = nil
	do()
	w.running = p
}

func (w *world) breaks(invariant, format string, args ...any) {
	if w.broken == nil {
		w.broken = &breach{invariant, fmt.Sprintf(format, args...)}
	}
}

// tale is what happened, a line each.
func (w *world) tale() string {
	var b strings.Builder
	o := w.order
	fmt.Fprintf(&b, "order of %d %s, keys kept %s, amounts checked by the provider %t\n", o.order.Order.GetTotal().GetMinor(), o.order.Order.GetTotal().GetCurrency(), o.promises.KeyWindow, !o.lax)
	for _, c := range o.order.Captures {
		fmt.Fprintf(&b, "  %s %d %s\n", c.GetPaymentId(), c.GetAmount().GetMinor(), c.GetStatus())
	}
	for _, l := range w.story {
		fmt.Fprintf(&b, "%s ", l.at.Sub(dawn))
		fmt.Fprintf(&b, l.format, l.args...)
		b.WriteByte('\n')
	}
	return b.String()
}

// read gives the order as the provider has it, without a step of anybody.
func (w *world) read() provider.Order {
	o, err := w.bank.ReadOrder(context.Background(), theTenant, theOrder)
	if err != nil {
		w.breaks("WORLD", "read the order: %v", err)
	}
	return o
}

// observe notes refunds that are new at the provider; hand says that they were
// made by hand.
func (w *world) observe(hand bool) {
	for _, r := range w.read().Refunds {
		if _, have := w.known[r.GetRefundId()]; have {
			continue
		}
		w.known[r.GetRefundId()] = r.GetStatus()
		kind := refundMade
		if hand {
			kind = refundByHand
		}
		w.note(fact{kind: kind, refund: r})
		w.tell("  %s is made: %d on %s for %q", r.GetRefundId(), r.GetAmount().GetMinor(), r.GetPaymentId(), r.GetReference())
	}
}

// pass lets time pass. Calls that are under way arrive before it is too late
// for them.
func (w *world) pass(d time.Duration) {
	target := w.clock.Add(d)
	for len(w.flying) > 0 && !w.flying[0].After(target) {
		w.clock = later(w.clock, w.flying[0].Add(-time.Millisecond))
		w.arrive()
	}
	w.clock = target
	w.tell("%s pass", d)
	if d >= w.order.promises.KeyWindow && w.order.promises.KeyWindow > 0 {
		w.seeDoubts()
	}
}

// seeDoubts: a key window has passed; perhaps over a refund in doubt.
func (w *world) seeDoubts() {
	w.aside(func() {
		e, _, _, _ := w.records.Entry(context.Background(), theTenant, theOrder)
		for _, in := range e.GetIntents() {
			c := in.GetOutcome().GetClass()
			w.saw[sawKeyWindow] = w.saw[sawKeyWindow] || in.GetOutcome() == nil || c == amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN
		}
	})
}

func (w *world) arrive() {
	w.flying = w.flying[1:]
	w.tell("a late call arrives")
	w.bank.Arrive()
	w.observe(false)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// wake looks after the deadlines that have passed; a timer may be late.
func (w *world) wake() {
	for _, m := range w.matters {
		next, waits := casework.Next(m.rec)
		if waits && !w.clock.Before(next) && w.choose("timer", 4, 1) == 0 {
			m.due()
		}
	}
}

// nextDeadline gives the earliest moment a case waits for.
func (w *world) nextDeadline(skip func(*matter) bool) (next time.Time, waits bool) {
	for _, m := range w.matters {
		if skip(m) {
			continue
		}
		if at, ok := casework.Next(m.rec); ok && (!waits || at.Before(next)) {
			next, waits = at, true
		}
	}
	return next, waits
}

// setStop throws or releases a stop switch.
func (w *world) setStop(scope string, on bool) {
	sw := &amendsv1.StopSwitch{Scope: scope, Stopped: on, By: "ops", Reason: "drill", At: timestamppb.New(w.clock)}
	data, err := proto.Marshal(sw)
	if err != nil {
		w.breaks("WORLD", "stop: %v", err)
	}
	w.records.SetStop(scope, data)
	w.stopped[scope] = on
	w.note(fact{kind: stopThrown, on: w.stopped[subject.StopAll] || w.stopped[theTenant]})
	w.tell("stop of %s: %t", scope, on)
	for _, m := range w.matters {
		if !on && casework.Held(m.rec) {
			m.post(roles.Orchestrator, &amendsv1.StopLifted{Released: sw})
		}
	}
}

// webhook tells every case what the provider says of a refund.
func (w *world) webhook(kind, id string) {
	for _, m := range w.matters {
		m.post("gateway", &amendsv1.ProviderEvent{OrderId: theOrder, Kind: kind, ObjectId: id})
	}
}

func (w *world) openNext() bool {
	if len(w.unopened) == 0 {
		return false
	}
	m := w.unopened[0]
	w.unopened = w.unopened[1:]
	w.matters = append(w.matters, m)
	m.open()
	return true
}

// take removes one of a list, chosen by the tape, or leaves it there to come
// again.
func take[T any](w *world, list *[]T, what string, again int) (T, bool) {
	i := w.pick(len(*list), what)
	v := (*list)[i]
	twice := w.choose(what+" twice", 100-again, again) == 1
	if !twice {
		*list = slices.Delete(*list, i, i+1)
	}
	return v, twice
}
