package casework_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// TRUTH-2: people are shown a refund as it was read back, not as the call
// answered.
func TestThePacketShowsWhatWasReadBack(t *testing.T) {
	t.Parallel()
	w := requested(t)
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	e.Refunds[0].ReadBack = &amendsv1.Refund{RefundId: "rf_5521", PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Status: statusFailed, Reference: e.Refunds[0].IdempotencyKey}
	w.apply(w.reply(task, e))
	w.is("HUMAN_HANDOFF")
	p := casework.Packet(w.rec)
	if got := p.GetCompletedActions(); len(got) != 1 || !strings.HasSuffix(got[0], ": failed") {
		t.Errorf("the packet shows %q", got)
	}
	if !slices.ContainsFunc(p.GetOpenQuestions(), func(q string) bool {
		return strings.HasPrefix(q, "refund rf_5521 of ₹2,000.00 on pay_8472_b is failed")
	}) {
		t.Errorf("the packet asks %q", p.GetOpenQuestions())
	}
}
