package executor_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// The founding case: one refund, with its records and its price.
func TestAnApprovedRefundIsMadeOnceAndCostsTwoSyncedWrites(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	d.run()
	a := duplicate("8472", 200000)
	res := d.ask(execute(a, d.sign(d.maya, a, 1)))
	d.expect("approved", res, acknowledged, "")
	d.onlyRefund("8472", 200000)
	if len(res.GetRefunds()) != 1 {
		t.Fatalf("result %v", res)
	}
	r := res.GetRefunds()[0]
	if r.GetOutcome().GetRefundId() != "rf_5521" || r.GetOutcome().GetProviderStatus() != amendsv1.RefundStatus_REFUND_STATUS_PENDING ||
		r.GetReadBack().GetRefundId() != "rf_5521" || r.GetReadBack().GetReference() != "refund:req-8472:pay_8472_b" {
		t.Errorf("refund %v", r)
	}
	e := d.entry("8472")
	if in := e.GetIntents()[0]; len(e.GetIntents()) != 1 || in.GetApprovalIds()[0] != "apr-8472-1" || in.GetActionSha256() != res.GetActionSha256() ||
		in.GetOutcome().GetRefundId() != "rf_5521" || e.GetOrderSum().GetMinor() != 200000 {
		t.Errorf("entry %v", e)
	}
	if n := d.stored(roles.StreamEffects); n != 2 {
		t.Errorf("%d synced writes, want intent and outcome", n)
	}
	if n := d.stored(roles.StreamAudit) + d.stored(roles.StreamDeadLetters); n != 0 {
		t.Errorf("%d further synced writes", n)
	}
	if posts, gets := len(d.front.creates("8472")), d.front.readings(); posts != 1 || gets != 2 {
		t.Errorf("%d creations and %d readings at the provider, want 1 and 2", posts, gets)
	}
}
