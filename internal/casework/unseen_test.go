package casework_test

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// MONEY-3: a finding that comes while the desk works is with people before the
// case ends, wherever it came and however the case goes on; the customer is
// answered all the same.
func TestAFindingWhileTheDeskWorksReachesPeople(t *testing.T) {
	t.Parallel()
	approved := func(w *world) {
		w.settle()
		w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	}
	for name, c := range map[string]struct {
		secondSettled bool
		walk          func(*world)
		row           string
		end           func(*world)
	}{
		"INVESTIGATING": {true, func(*world) {}, "finding.recorded", approved},
		"AWAITING_APPROVAL": {true, func(w *world) { w.settle() }, "finding.void", func(w *world) {
			w.settle()
			w.apply(w.decision(approve, "maya", "apr-8472-2", true))
		}},
		"HOLD_FOR_EVIDENCE": {false, func(w *world) { w.settle() }, "finding.recheck", func(w *world) {
			w.ledger = ledger8472(true)
			approved(w)
		}},
		"REFUND_REQUESTED": {true, approved, "finding.recorded", func(*world) {}},
		"RECONCILING": {true, func(w *world) {
			approved(w)
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
		}, "finding.recorded", func(w *world) { w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED) }},
		"then declined": {true, func(*world) {}, "finding.recorded", func(w *world) {
			w.settle()
			w.apply(w.decision(deny, "maya", "apr-8472-1", true))
		}},
		"then withdrawn": {true, func(*world) {}, "finding.recorded", func(w *world) { w.cancelAs("cust_5519") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ledger8472(c.secondSettled))
			w.post(supported())
			c.walk(w)
			w.apply(w.finding("order_over_refunded", "req-8472"))
			if w.lastRow() != c.row {
				t.Fatalf("row %s", w.lastRow())
			}
			c.end(w)
			w.settle()
			w.is("HUMAN_HANDOFF")
			if cu := w.rec.GetCustody(); cu.GetQueue() != casework.QueueReconciliation || cu.GetReason() != "order_over_refunded" || cu.GetCustodian() != "" || len(w.tasks()) != 0 {
				t.Errorf("custody %v", cu)
			}
			if n := w.rows("reply.verified.unseen"); n != 1 || len(w.rec.GetReplies()) == 0 {
				t.Errorf("handed over %d times, %d replies", n, len(w.rec.GetReplies()))
			}
			if _, err := casework.Decide(w.rec, w.finding("order_over_refunded", "req-8472"), w.lim); !errors.Is(err, casework.ErrNothingNew) {
				t.Errorf("again: %v", err)
			}
			// The customer has an answer: whoever looked into it ends it quietly.
			replies := len(w.rec.GetReplies())
			w.apply(w.custody(take, "sam", true))
			w.apply(w.custody(resolves, "sam", true))
			w.is("VERIFIED_CLOSED")
			if len(w.rec.GetReplies()) != replies {
				t.Errorf("%d replies", len(w.rec.GetReplies()))
			}
			w.replays()
		})
	}
}

// What a custodian has decided on was seen; what comes after it was not.
func TestAFindingIsSeenOnce(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.apply(w.finding("order_over_refunded", "req-8472"))
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(declines, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")

	w = disputed(t)
	w.apply(w.custody(take, "sam", true))
	w.apply(w.finding("order_over_refunded", "req-8472")) // after it was taken
	w.apply(w.custody(investigate, "sam", true))
	w.apply(w.finding("refund_missing", "req-8472"))
	w.ledger.Disputes = nil
	w.settle()
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	w.settle()
	w.is("HUMAN_HANDOFF")
	if got := w.rec.GetCustody().GetReason(); got != "refund_missing" {
		t.Errorf("reason %s", got)
	}
}

// A refund that failed while another one was under way does not end with a case
// that says all is well, nor as quietly as a finding.
func TestAFailureBesideAnotherRefundReachesPeople(t *testing.T) {
	t.Parallel()
	w := secondAction(t)
	first := casework.EffectAction(w.rec)
	w.told("refund.failed", "rf_5521")
	w.answer(confirms, w.readAgain(first, statusFailed))
	w.is("REFUND_REQUESTED")
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	e.Refunds[0].Outcome.RefundId = "rf_6000"
	w.apply(w.reply(task, e))
	w.settle()
	w.is("HUMAN_HANDOFF")
	if got := w.rec.GetCustody().GetReason(); got != "refund_failed_later" {
		t.Errorf("reason %s", got)
	}
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(resolves, "sam", true))
	if got := w.refusedWith(); got != "customer_waits" {
		t.Errorf("resolving is refused with %q", got)
	}
}
