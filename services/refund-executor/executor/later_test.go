package executor_test

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// A webhook makes the desk ask; the executor's own reading of the real provider
// answers, on the executor's own credential, and the ledger keeps it (B13, B15).
func TestConfirmOnTheDeskTRUTH2(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	d.run()
	a := duplicate("8472", 200000)
	d.expect("made", d.ask(execute(a, d.sign(d.maya, a, 1))), acknowledged, "")
	for word, want := range map[string]amendsv1.RefundStatus{
		"succeeded": amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED, "failed": amendsv1.RefundStatus_REFUND_STATUS_FAILED,
	} {
		if err := d.provider.Admin.SetRefundStatus(t.Context(), "rf_5521", word); err != nil {
			t.Fatal(err)
		}
		ask := confirm(a, &amendsv1.ProviderEvent{OrderId: "8472", Kind: "refund." + word, ObjectId: "rf_5521"})
		res := d.ask(ask)
		d.expect(word, res, acknowledged, "")
		if r := res.GetRefunds()[0]; r.GetOutcome().GetProviderStatus() != want || r.GetReadBack().GetStatus() != want {
			t.Errorf("%s: %v", word, r)
		}
		if o := d.entry("8472").GetIntents()[0].GetOutcome(); o.GetProviderStatus() != want {
			t.Errorf("%s: recorded %v", word, o)
		}
	}
	if n := len(d.front.creates("8472")); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// What nobody can tell from the provider's records a custodian answers, and
// signs; the console and the orchestrator only hand it over (AUTH-2).
func TestSettleOnTheDeskAUTH2(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	actions := map[string]*amendsv1.ActionRecord{}
	for _, order := range []string{"found", "none"} {
		d.order(order, 200000, 2)
		actions[order] = duplicate(order, 200000)
		d.front.disturb(loseRequest)
		d.expect(order, d.ask(execute(actions[order], d.sign(d.maya, actions[order], 1))), unknown, "connection_lost")
		d.front.disturb(nil)
	}
	d.order("found", 200000, 2, func(l *sandbox.Ledger) { byHand("_b", 200000)("found", l) })
	d.expect("too early to say", d.ask(d.settle(actions["none"], "")), undecidable, ledger.ReasonAbsenceOpen)
	d.expect("found", d.ask(d.settle(actions["found"], "rf_hand_found")), acknowledged, "")
	d.later(time.Minute)
	d.expect("none", d.ask(d.settle(actions["none"], "")), refused, ledger.ReasonSettledAbsent)
	for order, id := range map[string]string{"found": "rf_hand_found", "none": ""} {
		if o := d.entry(order).GetIntents()[0].GetOutcome(); o.GetSettledBy() != "maya" || o.GetRefundId() != id {
			t.Errorf("%s: recorded %v", order, o)
		}
		if n := len(d.front.creates(order)); n != 1 {
			t.Errorf("%s: %d calls", order, n)
		}
	}
}
