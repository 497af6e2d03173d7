package casework_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var failureCodes = []string{"refund_failed_later", casework.CodeFailureUntold}

// foundFailed is a comparison's finding that a refund failed.
func (w *world) foundFailed(code, refund string) casework.Input {
	w.tb.Helper()
	f := findingWith(code)
	f.RefundId = refund
	if code == casework.CodeFailureUntold {
		return w.input("orchestrator", &amendsv1.CaseFinding{Finding: f}, nil)
	}
	return w.input("refund-executor", f, nil)
}

// MONEY-3, TRUTH-2: that a comparison found a refund failed is a hint like a
// webhook's; what the executor then reads brings the case to people, and the
// customer hears.
func TestAFailureThatAComparisonFoundIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, code := range failureCodes {
		w := refundedWorld(t)
		replies := len(w.rec.GetReplies())
		w.apply(w.foundFailed(code, "rf_5521"))
		w.is("VERIFIED_CLOSED")
		o := w.asked()
		if len(o.GetEvents()) != 1 || o.GetEvents()[0].GetObjectId() != "rf_5521" || len(w.rec.GetFindings()) != 1 {
			t.Fatalf("%s: asked %v", code, o)
		}
		w.answer(confirms, w.readAgain(o.GetAction(), statusFailed))
		w.is("HUMAN_HANDOFF")
		if c := w.rec.GetCustody(); c.GetQueue() != casework.QueueHandoff || c.GetReason() != "refund_failed_later" {
			t.Errorf("%s: custody %v", code, c)
		}
		w.settle()
		if len(w.rec.GetReplies()) != replies+1 {
			t.Errorf("%s: the customer was not told", code)
		}
		if q := casework.Packet(w.rec).GetOpenQuestions(); !slices.ContainsFunc(q, func(q string) bool { return strings.Contains(q, "rf_5521 of ₹2,000.00 on pay_8472_b is failed") }) {
			t.Errorf("%s: the packet asks %q", code, q)
		}
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(resolves, "sam", true))
		if got := w.refusedWith(); got != "customer_waits" {
			t.Errorf("%s: resolved; refused with %q", code, got)
		}
		w.replays()
	}
}

// Where the case goes by the facts they are looked up again, and the question is
// asked besides.
func TestAFailureThatAComparisonFoundVoidsAnAction(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	w.apply(w.finding("amount_differs", "req-8472"))
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(proposes, "sam", true))
	w.is("AWAITING_APPROVAL")
	w.apply(w.foundFailed("refund_failed_later", "rf_5521"))
	w.is("INVESTIGATING")
	w.answer(confirms, w.readAgain(w.asked().GetAction(), statusFailed))
	w.is("HUMAN_HANDOFF")
}

// One that the executor reads to stand stays where it is, and is no reason to
// write to the customer later.
func TestAFailureThatAReadContradicts(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	w.apply(w.foundFailed("refund_failed_later", "rf_5521"))
	w.answer(confirms, w.readAgain(w.asked().GetAction(), statusSucceeded))
	w.is("VERIFIED_CLOSED")
	w.apply(w.finding("amount_differs", "req-8472"))
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(resolves, "sam", true))
	w.is("VERIFIED_CLOSED")
}

// A failure that cannot be read again, or is of a refund the case does not know,
// is not ended in silence either: the customer was told that the money comes.
func TestAFoundFailureIsNotResolvedInSilence(t *testing.T) {
	t.Parallel()
	for _, code := range failureCodes {
		for name, walk := range map[string]func(*world){
			"another refund": func(w *world) { w.apply(w.foundFailed(code, "rf_9")) },
			"not confirmed": func(w *world) {
				w.apply(w.foundFailed(code, "rf_5521"))
				w.answer(confirms, &amendsv1.TaskError{Reason: "engine_failed"})
				if q := casework.Packet(w.rec).GetOpenQuestions(); !slices.Contains(q, "a comparison found that refund rf_5521 failed; not confirmed") {
					t.Errorf("the packet asks %q", q)
				}
			},
			"and another finding after it": func(w *world) {
				w.apply(w.foundFailed(code, "rf_9"))
				w.apply(w.finding("amount_differs", "req-8472"))
			},
		} {
			w := refundedWorld(t)
			walk(w)
			w.is("HUMAN_HANDOFF")
			w.apply(w.custody(take, "sam", true))
			w.apply(w.custody(resolves, "sam", true))
			if got := w.refusedWith(); got != "customer_waits" {
				t.Errorf("%s, %s: resolved; refused with %q", code, name, got)
			}
		}
	}
}
