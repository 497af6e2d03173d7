package casework_test

import (
	"slices"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// TRUTH-2: a refund that the provider does not show as it was asked for is never
// confirmed. The executor is asked again, so often, and then people have the
// case with what it said (LIVE-1).
func TestARefundThatIsNotShownIsNotConfirmed(t *testing.T) {
	t.Parallel()
	const gap = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP
	for name, c := range map[string]struct {
		edit   func(*amendsv1.EffectResult)
		reason string
	}{
		"missing": {func(e *amendsv1.EffectResult) {
			e.Class, e.Reason, e.Refunds[0].ReadBack = gap, "read_back_missing", nil
		}, "read_back_missing"},
		"differs": {func(e *amendsv1.EffectResult) {
			e.Class, e.Reason, e.Refunds[0].ReadBack.Amount = gap, "read_back_differs", money.New(1, "INR")
		}, "read_back_differs"},
		"another reference": {func(e *amendsv1.EffectResult) {
			e.Class, e.Reason, e.Refunds[0].ReadBack.Reference = gap, "read_back_differs", "ours?"
		}, "read_back_differs"},
		"not read":       {func(e *amendsv1.EffectResult) { e.Refunds[0].ReadBack = nil }, "confirmation_failed"},
		"another's read": {func(e *amendsv1.EffectResult) { e.Refunds[0].ReadBack.RefundId = "rf_1" }, "confirmation_failed"},
	} {
		w := refundedWorld(t)
		w.told("refund.updated", "rf_5521")
		for n := 0; w.rec.GetState() == amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED; n++ {
			if n > w.lim.Confirmations {
				t.Fatalf("%s: asked %d times", name, n)
			}
			e := w.readAgain(w.asked().GetAction(), statusSucceeded)
			c.edit(e)
			w.answer(confirms, e)
			if w.lastRow() != "executor.not_known_yet" {
				t.Fatalf("%s: row %s", name, w.lastRow())
			}
			w.due()
		}
		w.is("HUMAN_HANDOFF")
		if got := w.rec.GetCustody(); got.GetReason() != c.reason || got.GetQueue() != casework.QueueReconciliation {
			t.Errorf("%s: custody %v", name, got)
		}
		want := "the executor could not confirm it: " + c.reason
		if q := casework.Packet(w.rec).GetOpenQuestions(); c.reason != "confirmation_failed" && !slices.Contains(q, want) {
			t.Errorf("%s: the packet asks %q", name, q)
		}
		if r := w.rec.GetEffect().GetRefunds()[0]; r.GetOutcome().GetProviderStatus() != amendsv1.RefundStatus_REFUND_STATUS_PENDING || r.GetReadBack() != nil {
			t.Errorf("%s: the effect is %v", name, r)
		}
	}
}

// A reading that comes right in time confirms after all.
func TestARefundThatIsShownLater(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	w.told("refund.updated", "rf_5521")
	e := w.readAgain(w.asked().GetAction(), statusSucceeded)
	e.Class, e.Reason, e.Refunds[0].ReadBack = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP, "read_back_missing", nil
	w.answer(confirms, e)
	w.due()
	w.settle()
	w.is("VERIFIED_CLOSED")
	if w.lastRow() != "refund.confirmed" || w.rec.GetEffect().GetRefunds()[0].GetReadBack().GetStatus() != statusSucceeded {
		t.Errorf("row %s, effect %v", w.lastRow(), w.rec.GetEffect())
	}
}
