package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// world is one order, its entry behind a compare-and-set, a provider that
// refuses nothing, and executors that crash, race, and lose answers. Whatever
// holds here holds by the ledger alone.
type world struct {
	tb       failer
	at       time.Time
	total    int64
	captures []*amendsv1.Capture
	entry    *amendsv1.EffectEntry // revision is the sequence of the compare-and-set
	stored   time.Time
	refunds  []*amendsv1.Refund
	// forgets: the provider keeps no keys, so a call that arrives is a refund.
	forgets bool
	// flying are calls on the wire: they may arrive late, or never.
	flying  []call
	workers []*worker
	actions []*amendsv1.ActionRecord
}

type call struct {
	key     string
	payment string
	amount  *amendsv1.Money
	// until: what has not arrived by then never does.
	until time.Time
}

// callTimeout is how long a call stays on the wire.
const callTimeout = 5 * time.Second

// worker is one executor at work on one action.
type worker struct {
	action *amendsv1.ActionRecord
	next   *amendsv1.EffectEntry // decided, not yet durable
	base   uint64
	// mine is the entry as it was begun, and calls are the calls not yet made,
	// by key.
	mine  *amendsv1.EffectEntry
	calls map[string]uint32
}

func (w *world) view() ledger.View {
	v := ledger.View{Tenant: "acme-in", Order: &amendsv1.Order{OrderId: "8472", Total: inr(w.total)}, Captures: w.captures}
	for _, r := range w.refunds {
		v.Refunds = append(v.Refunds, proto.CloneOf(r))
	}
	return v
}

func (w *world) swap(base uint64, next *amendsv1.EffectEntry) bool {
	if w.entry.GetRevision() != base {
		return false
	}
	if next.GetRevision() != base+1 {
		w.tb.Fatalf("revision %d follows %d", next.GetRevision(), base)
	}
	w.entry, w.stored = next, w.at
	return true
}

func approvals(a *amendsv1.ActionRecord) []string { return []string{"apr-" + a.GetCaseId()} }

// decide is everything the executor does up to the write of the intent.
func (w *world) decide(a *amendsv1.ActionRecord) *worker {
	positions, err := ledger.Positions(w.entry, a, sha(w.tb, a))
	if err != nil {
		return nil
	}
	if !slices.ContainsFunc(positions, ledger.Position.Open) || w.forgets && ledger.Doubt(positions) {
		return nil
	}
	if _, err := ledger.Admit(ledger.Question{Entry: w.entry, View: w.view(), Action: a, Positions: positions, Approved: true, At: w.at}); err != nil {
		return nil
	}
	n, err := ledger.WriteIntent(w.entry, ledger.Begin{Action: a, SHA256: sha(w.tb, a), Positions: positions, ApprovalIDs: approvals(a), Body: body, At: w.at, Window: window})
	if err != nil {
		return nil
	}
	return &worker{action: a, next: n, base: w.entry.GetRevision()}
}

// arrive is the provider's side of a call: a key it knows gives what it gave.
func (w *world) arrive(c call) *amendsv1.Refund {
	for _, r := range w.refunds {
		if r.GetReference() == c.key && !w.forgets {
			return r
		}
	}
	r := &amendsv1.Refund{
		RefundId: fmt.Sprintf("rf_%d", 5521+len(w.refunds)), PaymentId: c.payment, Amount: c.amount,
		Status: amendsv1.RefundStatus_REFUND_STATUS_PENDING, Reference: c.key, CreatedAt: timestamppb.New(w.at),
	}
	w.refunds = append(w.refunds, r)
	return r
}

// record writes an outcome, deciding again after a lost race.
func (w *world) record(key string, number uint32, a ledger.Answer) {
	n, err := ledger.WriteOutcome(w.entry, key, number, a, w.at)
	if err != nil {
		w.tb.Fatalf("outcome of %s: %v", key, err)
	}
	if n != nil && !w.swap(w.entry.GetRevision(), n) {
		w.tb.Fatal("outcome lost its race")
	}
}

// check holds the invariants up to the world, by name.
func (w *world) check(t *rapid.T) {
	perCapture, perKey, order := map[string]int64{}, map[string]int{}, int64(0)
	for _, r := range w.refunds {
		perKey[r.GetReference()]++
		if perKey[r.GetReference()] > 1 {
			t.Fatalf("MONEY-1: key %s made two refunds", r.GetReference())
		}
		in := intent(w.tb, w.entry, r.GetReference())
		if in.GetPaymentId() != r.GetPaymentId() || in.GetAmount().GetMinor() != r.GetAmount().GetMinor() || len(in.GetApprovalIds()) == 0 {
			t.Fatalf("MONEY-2: refund %v has intent %v", r, in)
		}
		if r.GetStatus() == amendsv1.RefundStatus_REFUND_STATUS_FAILED {
			continue
		}
		perCapture[r.GetPaymentId()] += r.GetAmount().GetMinor()
		order += r.GetAmount().GetMinor()
	}
	settled := int64(0)
	for _, c := range w.captures {
		settled += c.GetAmount().GetMinor()
		if perCapture[c.GetPaymentId()] > c.GetAmount().GetMinor() {
			t.Fatalf("MONEY-1: %d refunded of %d on %s", perCapture[c.GetPaymentId()], c.GetAmount().GetMinor(), c.GetPaymentId())
		}
	}
	if order > max(0, settled-w.total) {
		t.Fatalf("MONEY-4: %d refunded, %d settled, order total %d", order, settled, w.total)
	}
	w.checkEntry(t)
}

func (w *world) checkEntry(t *rapid.T) {
	seen, spent, made := map[string]bool{}, map[string]string{}, map[string]bool{}
	for _, in := range w.entry.GetIntents() {
		if seen[in.GetIdempotencyKey()] {
			t.Fatalf("MONEY-1: key %s has two intents", in.GetIdempotencyKey())
		}
		seen[in.GetIdempotencyKey()] = true
		for _, id := range in.GetApprovalIds() {
			if other, ok := spent[id]; ok && other != in.GetActionSha256() {
				t.Fatalf("MONEY-2: approval %s spent by two actions", id)
			}
			spent[id] = in.GetActionSha256()
		}
		o := in.GetOutcome()
		if o.GetClass() == acknowledged && o.GetRefundId() == "" {
			t.Fatalf("TRUTH-2: %s acknowledged without a refund", in.GetIdempotencyKey())
		}
		if o.GetRefundId() != "" && made[o.GetRefundId()] {
			t.Fatalf("MONEY-3: refund %s is the outcome of two intents", o.GetRefundId())
		}
		made[o.GetRefundId()] = true
	}
	for _, ts := range w.entry.GetTombstones() {
		if !seen[ts.GetIdempotencyKey()] {
			continue
		}
		if in := intent(w.tb, w.entry, ts.GetIdempotencyKey()); in.GetOutcome().GetClass() != noEffect {
			t.Fatalf("key %s is withdrawn and begun", ts.GetIdempotencyKey())
		}
	}
	if w.entry == nil {
		return
	}
	again := proto.CloneOf(w.entry)
	if err := ledger.Sum(again); err != nil || !proto.Equal(again, w.entry) {
		t.Fatalf("the entry's sums are %v and %v, not those of its intents: %v", w.entry.GetSums(), w.entry.GetOrderSum(), err)
	}
}

// TestAnyScheduleHoldsMONEY1MONEY2MONEY4 runs several cases against one order
// under schedules of crashes, lost answers, late calls, refusals, takeovers,
// cancels, look-ups, people's answers and refunds that fail later, at
// a provider that keeps keys or none.
func TestAnyScheduleHoldsMONEY1MONEY2MONEY4(t *testing.T) {
	t.Parallel()
	for range 10 { // a late call that a refusal had released takes many schedules to find
		rapid.Check(t, schedule)
	}
}

func schedule(t *rapid.T) {
	w := &world{tb: t, at: now, total: 100000, forgets: rapid.Bool().Draw(t, "no keys")}
	for i := range rapid.IntRange(1, 3).Draw(t, "captures") {
		c := view().Captures[0]
		c.PaymentId, c.Amount = fmt.Sprintf("pay_%d", i), inr(100000)
		w.captures = append(w.captures, c)
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "cases") {
		w.actions = append(w.actions, w.draw(t, i))
	}
	t.Repeat(map[string]func(*rapid.T){
		"":             w.check,
		"decide":       w.take,
		"decide again": w.take,
		"work":         w.work,
		"work on":      w.work,
		"work further": w.work,
		"deliver":      w.deliver,
		"crash":        func(t *rapid.T) { w.drop(w.pick(t)) },
		"cancel":       w.cancel,
		"look up":      w.lookUp,
		"look again":   w.lookUp,
		"observe":      w.observe,
		"settle":       w.settle,
		"fail or pass": w.later,
	})
}

// draw makes the nth case's action. The fourth is a newer proposal of the first.
func (w *world) draw(t *rapid.T, n int) *amendsv1.ActionRecord {
	var refunds []*amendsv1.ActionRefund
	for _, c := range w.captures {
		if refunds == nil || rapid.Bool().Draw(t, "also "+c.GetPaymentId()) {
			refunds = append(refunds, refund(c.GetPaymentId(), rapid.SampledFrom([]int64{50000, 100000}).Draw(t, "amount")))
		}
	}
	if rapid.Bool().Draw(t, "last only") {
		refunds = refunds[len(refunds)-1:]
	}
	a := action(fmt.Sprintf("req-%d", n%3), refunds...)
	a.Proposal = uint32(n/3) + 1
	return a
}

func (w *world) take(t *rapid.T) {
	if k := w.decide(rapid.SampledFrom(w.actions).Draw(t, "action")); k != nil {
		w.workers = append(w.workers, k)
	}
}

// work lets one executor do its next step.
func (w *world) work(t *rapid.T) {
	k := w.pick(t)
	if k.next != nil {
		w.begin(t, k)
	} else {
		w.send(t, k)
	}
	if k.next == nil && len(k.calls) == 0 {
		w.drop(k)
	}
}

func (w *world) cancel(t *rapid.T) {
	n, err := ledger.WriteTombstones(w.entry, rapid.SampledFrom(w.actions).Draw(t, "action"), 1, w.at)
	if err == nil && n != nil {
		w.swap(w.entry.GetRevision(), n)
	}
}

// read gives a reading of the order, and what the entry says of an action.
func (w *world) read(t *rapid.T) (ledger.Look, []ledger.Position) {
	a := rapid.SampledFrom(w.actions).Draw(t, "action")
	positions, err := ledger.Positions(w.entry, a, sha(w.tb, a))
	if err != nil {
		t.Skip("withdrawn or another's")
	}
	return ledger.Look{View: w.view(), At: w.at, StoredAt: w.stored, CallTimeout: callTimeout}, positions
}

// lookUp decides what a reading proves; making it durable is a step of its own,
// and may lose its race.
func (w *world) lookUp(t *rapid.T) {
	look, positions := w.read(t)
	n, err := ledger.WriteLookUp(w.entry, positions, look, w.at)
	if err != nil {
		t.Fatalf("look up: %v", err)
	}
	if n != nil {
		w.workers = append(w.workers, &worker{action: &amendsv1.ActionRecord{}, next: n, base: w.entry.GetRevision()})
	}
}

func (w *world) observe(t *rapid.T) {
	n, err := ledger.Observe(w.entry, w.view(), nil, w.at)
	if err != nil {
		t.Fatalf("observe: %v", err)
	}
	if n != nil {
		w.swap(w.entry.GetRevision(), n)
	}
}

// settle is a person's answer, right or wrong.
func (w *world) settle(t *rapid.T) {
	look, positions := w.read(t)
	ids := []string{""}
	for _, r := range w.refunds {
		ids = append(ids, r.GetRefundId())
	}
	s := ledger.Settling{Positions: positions, Look: look, By: "maya", At: w.at}
	for _, p := range positions {
		s.Answers = append(s.Answers, &amendsv1.Settlement{IdempotencyKey: p.Refund.GetIdempotencyKey(), RefundId: rapid.SampledFrom(ids).Draw(t, "answer")})
	}
	if n, err := ledger.WriteSettlement(w.entry, s); err == nil && n != nil {
		w.swap(w.entry.GetRevision(), n)
	}
}

// later lets time pass, and may fail a refund for good.
func (w *world) later(t *rapid.T) {
	w.at = w.at.Add(10 * time.Second)
	if len(w.refunds) > 0 && rapid.Bool().Draw(t, "fails") {
		rapid.SampledFrom(w.refunds).Draw(t, "refund").Status = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	}
}

func (w *world) pick(t *rapid.T) *worker {
	if len(w.workers) == 0 {
		t.Skip("nobody works")
	}
	return rapid.SampledFrom(w.workers).Draw(t, "worker")
}

func (w *world) drop(k *worker) {
	w.workers = slices.DeleteFunc(w.workers, func(other *worker) bool { return other == k })
}

// begin makes a decided entry durable, or loses the race. The acknowledgement
// may be lost: then the worker has to decide again.
func (w *world) begin(t *rapid.T, k *worker) {
	if won := w.swap(k.base, k.next); won && !rapid.Bool().Draw(t, "acknowledgement lost") {
		k.mine, k.calls = k.next, map[string]uint32{}
		for _, r := range k.action.GetRefunds() {
			in := intent(w.tb, k.mine, r.GetIdempotencyKey())
			if c := in.GetOutcome().GetClass(); c != acknowledged && c != refusedClass {
				k.calls[r.GetIdempotencyKey()] = in.GetCalls()
			}
		}
	}
	k.next = nil
}

// send puts a call on the wire, or fails to and says so.
func (w *world) send(t *rapid.T, k *worker) {
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(k.calls))).Draw(t, "key")
	number := k.calls[key]
	delete(k.calls, key)
	in := intent(w.tb, k.mine, key)
	fate := rapid.SampledFrom([]string{"arrives", "refused", "not sent", "late", "answer lost"}).Draw(t, "fate")
	if !w.at.Before(in.GetCallBefore().AsTime()) {
		fate = "not sent"
	}
	c := call{key: key, payment: in.GetPaymentId(), amount: in.GetAmount(), until: w.at.Add(callTimeout)}
	switch fate {
	case "arrives":
		r := w.arrive(c)
		w.record(key, number, ledger.Answer{Class: acknowledged, RefundID: r.GetRefundId(), Status: r.GetStatus()})
	case "refused":
		w.record(key, number, ledger.Answer{Class: refusedClass, Reason: "disputed"})
	case "not sent":
		w.record(key, number, ledger.Answer{Class: noEffect, Reason: "not_sent"})
	case "late": // the caller gives up, the call does not
		w.flying = append(w.flying, c)
		w.record(key, number, ledger.Answer{Class: unknown, Reason: "timeout"})
	case "answer lost": // the caller dies before it hears
		w.flying = append(w.flying, c)
	}
}

// deliver lets a late call arrive.
func (w *world) deliver(t *rapid.T) {
	if len(w.flying) == 0 {
		t.Skip("nothing on the wire")
	}
	i := rapid.IntRange(0, len(w.flying)-1).Draw(t, "call")
	if w.at.Before(w.flying[i].until) {
		w.arrive(w.flying[i])
	}
	w.flying = slices.Delete(w.flying, i, i+1)
}
