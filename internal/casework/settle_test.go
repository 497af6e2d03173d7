package casework_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const settle = amendsv1.Slice_SLICE_SETTLE

// doubtTaken is a case in sam's custody of whose refund nobody knows.
func doubtTaken(t *testing.T) *world {
	t.Helper()
	w := requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
	w.is("RECONCILING")
	w.apply(w.custody(take, "sam", true))
	w.is("HUMAN_HANDOFF")
	if !w.rec.GetOutcomeUnknown() {
		t.Fatal("MONEY-3: an outcome that cannot be decided counts as known")
	}
	return w
}

// noSuchRefund answers that the refund does not exist.
func noSuchRefund(d *amendsv1.CustodyDecision) { d.Settlements[0].RefundId = "" }

// MONEY-3: a person's signed answer ends a doubt when the executor finds it so.
func TestSettlement(t *testing.T) {
	t.Parallel()
	key := approval.Key("req-8472", "pay_8472_b")
	w := doubtTaken(t)
	if q := strings.Join(casework.Packet(w.rec).GetOpenQuestions(), "\n"); !strings.Contains(q, "does the refund of ₹2,000.00 on pay_8472_b exist? settle "+key+" with its refund id, or none") {
		t.Errorf("the packet asks %s", q)
	}
	in := w.custody(settles, "sam", true)
	w.apply(in)
	w.is("RECONCILING")
	task := w.mustTask(settle)
	if o := task.Payload.GetSettle(); !proto.Equal(o.GetDecision(), in.Payload) || !proto.Equal(o.GetAction(), w.rec.GetAction()) || task.Payload.GetContract().GetBudget().GetEffects() != 0 {
		t.Errorf("asked %v", task.Payload)
	}
	if len(w.tasks()) != 1 || w.rec.GetDeadlines().GetEffect() != nil {
		t.Errorf("asked %d things at once", len(w.tasks()))
	}
	w.settle()
	w.is("VERIFIED_CLOSED")
	if w.rows("effect.found") != 1 || w.rec.GetEffect().GetRefunds()[0].GetOutcome().GetRefundId() != "rf_5521" || w.rec.GetReplies()[len(w.rec.GetReplies())-1].GetKind() != amendsv1.ReplyKind_REPLY_KIND_REFUNDED {
		t.Errorf("the case ended with %v and %v", w.rec.GetEffect(), w.rec.GetReplies())
	}

	w = doubtTaken(t)
	w.apply(w.custody(settles, "sam", true, noSuchRefund))
	w.settle()
	w.is("HUMAN_HANDOFF")
	if w.rec.GetOutcomeUnknown() || w.rec.GetCustody().GetReason() != "settled_absent" || w.rows("effect.refused.reconciling") != 1 {
		t.Errorf("unknown %t, custody %v", w.rec.GetOutcomeUnknown(), w.rec.GetCustody())
	}
	w.apply(w.custody(take, "sam", true)) // now it can be decided
	w.apply(w.custody(investigate, "sam", true))
	w.settle()
	w.is("AWAITING_APPROVAL")
}

// TRUTH-2: a wrong answer settles nothing. The case is with people, who read
// why; nothing else asked meanwhile fights it.
func TestAWrongSettlement(t *testing.T) {
	t.Parallel()
	w := doubtTaken(t)
	w.apply(w.custody(settles, "sam", true))
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE, nil)
	e.Reason = "settle_refund_unknown"
	w.answer(settle, e)
	w.is("RECONCILING")
	if c := w.rec.GetCustody(); !w.rec.GetOutcomeUnknown() || c.GetReason() != "settle_refund_unknown" || c.GetQueue() != casework.QueueReconciliation || len(w.tasks()) != 0 {
		t.Errorf("custody %v, %d tasks", c, len(w.tasks()))
	}
	w.apply(w.custody(take, "lee", true))
	if q := strings.Join(casework.Packet(w.rec).GetOpenQuestions(), "\n"); !strings.Contains(q, "did not settle it: settle_refund_unknown") {
		t.Errorf("the packet asks %s", q)
	}
	w.apply(w.custody(settles, "lee", true, noSuchRefund))
	w.settle()
	w.is("HUMAN_HANDOFF")
	w.replays()

	// A refusal that says nothing of the refunds is no answer to them.
	w = doubtTaken(t)
	w.apply(w.custody(settles, "sam", true))
	e = w.effect(amendsv1.EffectClass_EFFECT_CLASS_REFUSED, nil)
	e.Reason = "order_reserved"
	w.answer(settle, e)
	w.is("RECONCILING")
	if !w.rec.GetOutcomeUnknown() {
		t.Error("MONEY-3: the doubt is gone")
	}
	w.due() // and then the search goes on by itself
	w.mustTask(amendsv1.Slice_SLICE_EXECUTE)

	// A refund that is there and failed is no refund.
	w = doubtTaken(t)
	w.apply(w.custody(settles, "sam", true))
	e = w.settlement(w.mustTask(settle).Payload.GetSettle())
	e.Refunds[0].Outcome.ProviderStatus = statusFailed
	w.answer(settle, e)
	w.is("HUMAN_HANDOFF")
}

// LIVE-1: an executor that does not answer is asked the same again, and a case
// can be taken back from it; its answer counts all the same.
func TestASettlementThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	w := doubtTaken(t)
	w.apply(w.custody(settles, "sam", true))
	first := w.mustTask(settle)
	w.answer(settle, w.effect(amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, nil))
	w.mustTask(settle) // it may know later
	w.answer(settle, &amendsv1.TaskError{Reason: "deadline_passed", Retryable: true, MessageId: first.Envelope.GetMessageId()})
	w.due()
	if again := w.mustTask(settle); again.Envelope.GetMessageId() == first.Envelope.GetMessageId() || !proto.Equal(again.Payload.GetSettle(), first.Payload.GetSettle()) {
		t.Errorf("asked %v", again)
	}
	w.apply(w.custody(take, "lee", true))
	w.is("HUMAN_HANDOFF")
	late := w.settlement(first.Payload.GetSettle())
	w.apply(w.reply(first, late))
	if w.lastRow() != "effect.late" || w.rec.GetOutcomeUnknown() {
		t.Errorf("row %s", w.lastRow())
	}
	w.replays()

	w = doubtTaken(t)
	w.apply(w.custody(settles, "sam", true))
	for n := 0; w.rec.GetState() == amendsv1.CaseState_CASE_STATE_RECONCILING; n++ {
		if n > 30 {
			t.Fatal("it is asked for ever")
		}
		w.due()
	}
	w.is("HUMAN_HANDOFF")

	w = doubtTaken(t)
	w.apply(w.custody(settles, "sam", true, noSuchRefund))
	task := w.mustTask(settle)
	absent := w.work(task)
	w.apply(w.custody(take, "lee", true))
	w.apply(w.reply(task, absent))
	if w.lastRow() != "effect.refused.late" || w.rec.GetOutcomeUnknown() {
		t.Errorf("row %s", w.lastRow())
	}
}

func TestSettlementsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		walk func(*testing.T) *world
		in   func(*world) casework.Input
		want string
	}{
		"nothing is in doubt": {func(t *testing.T) *world {
			w := disputed(t)
			w.apply(w.custody(take, "sam", true))
			return w
		}, func(w *world) casework.Input {
			return w.custody(settles, "sam", true, func(d *amendsv1.CustodyDecision) {
				d.Settlements = []*amendsv1.Settlement{{IdempotencyKey: approval.Key("req-8472", "pay_8472_b")}}
			})
		}, "outcome_known"},
		"not in their custody": {doubtTaken, func(w *world) casework.Input { return w.custody(settles, "lee", true) }, "not_the_custodian"},
		"not as shown": {doubtTaken, func(w *world) casework.Input {
			return w.custody(settles, "sam", true, func(d *amendsv1.CustodyDecision) { d.PacketSha256 = strings.Repeat("0", 64) })
		}, "record_changed"},
		"not signed": {doubtTaken, func(w *world) casework.Input { return w.custody(settles, "sam", false) }, "signature_invalid"},
		"another key": {doubtTaken, func(w *world) casework.Input {
			return w.custody(settles, "sam", true, func(d *amendsv1.CustodyDecision) {
				d.Settlements[0].IdempotencyKey = approval.Key("req-8472", "pay_8472_a")
			})
		}, "settlement_mismatch"},
		"one more": {doubtTaken, func(w *world) casework.Input {
			return w.custody(settles, "sam", true, func(d *amendsv1.CustodyDecision) {
				d.Settlements = append(d.Settlements, &amendsv1.Settlement{IdempotencyKey: approval.Key("req-8472", "pay_8472_c")})
			})
		}, "settlement_mismatch"},
		"while it is looked for": {func(t *testing.T) *world {
			w := requested(t)
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
			return w
		}, func(w *world) casework.Input { return w.custody(settles, "sam", true) }, "not_in_custody"},
	} {
		w := c.walk(t)
		in := c.in(w)
		state := w.rec.GetState()
		w.apply(in)
		if got := w.refusedWith(); got != c.want || w.rec.GetState() != state {
			t.Errorf("%s: refused with %q in %s, want %q", name, got, casework.StateName(w.rec.GetState()), c.want)
		}
	}
}

// LIVE-1: when the executor proves by itself that there is no refund, nobody is
// asked about the custodian's answer any more, and the case is the desk's.
func TestAbsenceEndsAnOpenSettlement(t *testing.T) {
	t.Parallel()
	w := requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
	w.due()
	exec := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(settles, "sam", true))
	w.is("RECONCILING")
	open := w.mustTask(settle)
	w.apply(w.reply(exec, w.effect(amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, nil)))
	w.is("REFUND_REQUESTED")
	if c := w.rec.GetCustody(); c.GetQueue() != casework.QueueDesk || len(w.tasks()) != 0 {
		t.Errorf("custody %v with %d tasks", c, len(w.tasks()))
	}
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE, nil)
	e.Reason = "settle_refund_unknown"
	w.apply(w.reply(open, e)) // its late answer changes nothing
	w.is("REFUND_REQUESTED")
	w.due()
	w.mustTask(amendsv1.Slice_SLICE_EXECUTE)

	// One that finds the refund counts, late as it is.
	w.apply(w.reply(open, w.settlement(open.Payload.GetSettle())))
	w.settle()
	w.is("VERIFIED_CLOSED")
}

// LIVE-1: a refund that has an id and that the provider never shows is nobody's
// to settle; people decide the case, knowing of it.
func TestARefundThatIsNeverShownCanBeDecided(t *testing.T) {
	t.Parallel()
	w := requested(t)
	for n := 0; w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF; n++ {
		if n > 400 {
			t.Fatal("it is asked for ever")
		}
		if _, ok := w.task(amendsv1.Slice_SLICE_EXECUTE); ok {
			e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, w.rec.GetAction())
			e.Class, e.Reason = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP, "read_back_missing"
			w.answer(amendsv1.Slice_SLICE_EXECUTE, e)
		}
		w.due()
	}
	w.settle()
	w.apply(w.custody(take, "sam", true))
	q := strings.Join(casework.Packet(w.rec).GetOpenQuestions(), "\n")
	if !w.rec.GetOutcomeUnknown() || !strings.Contains(q, "the executor could not tell: read_back_missing") {
		t.Errorf("unknown %t, the packet asks %s", w.rec.GetOutcomeUnknown(), q)
	}
	w.apply(w.custody(settles, "sam", true))
	if got := w.refusedWith(); got != "outcome_known" {
		t.Errorf("settling is refused with %q", got)
	}
	w.apply(w.custody(investigate, "sam", true)) // the executor can be asked once more
	w.is("RECONCILING")
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(closes, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")
	if len(casework.Made(w.rec)) != 1 || w.rec.GetOutcomeUnknown() {
		t.Errorf("made %v, unknown %t", casework.Made(w.rec), w.rec.GetOutcomeUnknown())
	}
}

// LIVE-1: however often the executor was asked, a person can have it asked again.
func TestPeopleCanAlwaysAskAgain(t *testing.T) {
	t.Parallel()
	w := doubtful(t)
	for range 12 {
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(investigate, "sam", true))
		w.is("RECONCILING")
		w.due()
	}
	for range 2 { // and to verify an answer, however long it was away
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(settles, "sam", true))
		for w.rec.GetState() == amendsv1.CaseState_CASE_STATE_RECONCILING {
			w.due()
		}
	}
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(settles, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")
}
