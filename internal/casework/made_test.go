package casework_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// secondAction is a case that made refund rf_5521 and is asked for another one,
// which a custodian proposed.
func secondAction(t *testing.T) *world {
	t.Helper()
	w := refundedWorld(t)
	w.apply(w.finding("amount_differs", "req-8472"))
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(proposes, "sam", true, func(d *amendsv1.CustodyDecision) {
		d.Refunds = []*amendsv1.ActionRefund{{PaymentId: "pay_8472_a", Amount: money.New(1000, "INR"), Kind: approval.KindGoodwill, IdempotencyKey: approval.Key("req-8472", "pay_8472_a")}}
	}))
	w.apply(w.decision(approve, "maya", "apr-8472-2", true))
	w.is("REFUND_REQUESTED")
	return w
}

// MONEY-3: what becomes of a second action does not take the first one's refund
// out of the record: people are shown it, and that it failed later is asked
// about and reaches them.
func TestAnEarlierRefundStaysInTheRecord(t *testing.T) {
	t.Parallel()
	for name, class := range map[string]amendsv1.EffectClass{
		"refused":      amendsv1.EffectClass_EFFECT_CLASS_REFUSED,
		"acknowledged": amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED,
	} {
		w := secondAction(t)
		first := proto.CloneOf(casework.EffectAction(w.rec))
		task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
		e := w.effect(class, task.Payload.GetExecute().GetAction())
		second := task.Payload.GetExecute().GetAction()
		for _, r := range e.GetRefunds() {
			r.Outcome.RefundId = "rf_6000"
		}
		w.apply(w.reply(task, e))
		if all := strings.Join(casework.Packet(w.rec).GetCompletedActions(), "\n"); !strings.Contains(all, "refund rf_5521 of ₹2,000.00 on pay_8472_b") {
			t.Errorf("%s: the packet has only %q", name, all)
		}
		var a casework.Account
		a.Take(w.rec)
		if told := a.Refunds()[first.GetRefunds()[0].GetIdempotencyKey()]; told.RefundID != "rf_5521" || told.OrderID != "8472" {
			t.Errorf("%s: told of %v", name, a.Refunds())
		}
		w.settle()
		if class == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED { // each question is about one action
			w.told("refund.updated", "rf_6000")
			w.told("refund.updated", "rf_6000")
			w.told("refund.failed", "rf_5521")
			if o := w.asked(); !proto.Equal(o.GetAction(), second) || len(o.GetEvents()) != 1 {
				t.Fatalf("asked %v", o)
			}
			now := w.readAgain(second, statusSucceeded)
			now.Refunds[0].Outcome.RefundId, now.Refunds[0].ReadBack.RefundId = "rf_6000", "rf_6000"
			w.answer(confirms, now)
			now = proto.CloneOf(now)
			if o := w.asked(); proto.Equal(o.GetAction(), second) { // the same news again
				w.answer(confirms, now)
			}
		} else {
			w.told("refund.failed", "rf_5521")
		}
		if o := w.asked(); !proto.Equal(o.GetAction(), first) || w.refusedWith() != "" {
			t.Fatalf("%s: asked %v, refused with %q", name, o, w.refusedWith())
		}
		w.answer(confirms, w.readAgain(first, statusFailed))
		w.is("HUMAN_HANDOFF")
		if q := strings.Join(casework.Packet(w.rec).GetOpenQuestions(), "\n"); !strings.Contains(q, "refund rf_5521 of ₹2,000.00 on pay_8472_b is failed") {
			t.Errorf("%s: the packet asks %s", name, q)
		}
	}
}

// A later answer for the same action that does not name a refund does not
// unmake it.
func TestAnAnswerWithoutARefundForgetsNone(t *testing.T) {
	t.Parallel()
	w := requested(t)
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	part := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	part.Class = amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT // of another of its refunds
	w.apply(w.reply(task, part))
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_REFUSED)
	w.is("HUMAN_HANDOFF")
	if made := casework.Made(w.rec); len(made) != 1 || made[0].GetOutcome().GetRefundId() != "rf_5521" {
		t.Errorf("MONEY-3: the record knows of %v", made)
	}
}

// MONEY-3: a case that is about another order by now still knows its own refund,
// and asks about it inside the scope of the order it is of.
func TestOwnRefundOfAnotherOrderThanTheCaseIsAbout(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	w.apply(w.finding("amount_differs", "req-8472"))
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(asks, "sam", true))
	w.settle()
	w.is("AWAITING_CUSTOMER")
	w.says("9000")
	if got := casework.OrderOf(w.rec); got != "9000" {
		t.Fatalf("the case is about %s", got)
	}
	w.told("refund.failed", "rf_of_somebody")
	if got := w.refusedWith(); got != "order_mismatch" {
		t.Errorf("somebody's refund of the other order: refused with %q", got)
	}
	w.told("refund.failed", "rf_5521")
	if got := w.refusedWith(); got != "" {
		t.Fatalf("refused with %q", got)
	}
	task := w.mustTask(confirms)
	if c := task.Payload.GetContract(); c.GetScope().GetOrderId() != "8472" {
		t.Errorf("the scope is %v", c.GetScope())
	}
	if err := casework.Admit(w.rec, task.Payload.GetContract(), w.now, w.lim); err != nil {
		t.Error(err)
	}
	w.answer(confirms, w.readAgain(task.Payload.GetConfirm().GetAction(), statusFailed))
	w.is("HUMAN_HANDOFF")
}

// MONEY-1: what was withdrawn before it began is never paid under its key, so
// nobody is made to approve it again: people are told, and the desk hands over.
func TestWhatWasWithdrawnIsNotProposedAgain(t *testing.T) {
	t.Parallel()
	const notBegun = amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN
	for name, named := range map[string]bool{"the whole": false, "each refund": true} {
		w := requested(t)
		w.cancel()
		e := w.effect(notBegun, nil)
		if named {
			e = w.inDoubt(w.rec.GetAction())
			e.Class, e.Refunds[0].Outcome.Class = notBegun, notBegun
		}
		w.answer(amendsv1.Slice_SLICE_CANCEL, e)
		w.is("CANCELLED")
		w.settle()
		w.apply(w.finding("amount_differs", "req-8472"))
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(proposes, "sam", true))
		if got := w.refusedWith(); got != "withdrawn" {
			t.Errorf("%s: proposing it again is refused with %q", name, got)
		}
		w.apply(w.custody(investigate, "sam", true))
		w.settle()
		w.is("HUMAN_HANDOFF")
		if got := w.rec.GetCustody().GetReason(); got != "withdrawn" {
			t.Errorf("%s: reason %s", name, got)
		}
		w.apply(w.custody(take, "sam", true)) // the other payment is not affected
		w.apply(w.custody(proposes, "sam", true, func(d *amendsv1.CustodyDecision) {
			d.Refunds[0].PaymentId, d.Refunds[0].IdempotencyKey = "pay_8472_a", approval.Key("req-8472", "pay_8472_a")
		}))
		w.is("AWAITING_APPROVAL")
	}
}

// MONEY-3: an answer that names another refund under the same key takes none out
// of the record; the customer is told of what was acknowledged just now.
func TestTwoRefundsUnderOneKeyStayBoth(t *testing.T) {
	t.Parallel()
	w := requested(t)
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	part := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	part.Class = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN
	w.apply(w.reply(task, part))
	w.told("refund.failed", "rf_5521")
	w.due()
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	e.Refunds[0].Outcome.RefundId = "rf_7"
	w.answer(amendsv1.Slice_SLICE_EXECUTE, e)
	w.is("REFUNDED")
	if made := casework.Made(w.rec); len(made) != 2 || made[0].GetOutcome().GetRefundId() != "rf_5521" || made[1].GetOutcome().GetRefundId() != "rf_7" {
		t.Errorf("made %v", made)
	}
	var told []string
	for _, f := range w.rec.GetReply().GetFacts() {
		if f.GetRefundId() != "" {
			told = append(told, f.GetRefundId())
		}
	}
	if len(told) != 1 || told[0] != "rf_7" {
		t.Errorf("the customer is told of %q", told)
	}
	w.asked()
}
