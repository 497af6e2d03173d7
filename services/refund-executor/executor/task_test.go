package executor_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A task that is none of the executor's business is answered with a reason,
// kept as a dead letter, and moves nothing.
func TestATaskOutsideItsContractIsRefused(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 50000, 2)
	d.run()
	dead := uint64(0)
	for name, c := range map[string]struct {
		change    func(*amendsv1.TaskAssign)
		want      string
		retryable bool
	}{
		"another slice": {func(a *amendsv1.TaskAssign) { a.Contract.Slice = amendsv1.Slice_SLICE_CANCEL }, "slice_mismatch", false},
		"another's work": {func(a *amendsv1.TaskAssign) {
			a.Input = &amendsv1.TaskAssign_Payment{Payment: &amendsv1.PaymentSlice{OrderId: "8472"}}
		}, "slice_mismatch", false},
		"another target":   {func(a *amendsv1.TaskAssign) { a.Contract.Target = string(roles.Composer) }, "target_mismatch", false},
		"another tenant":   {func(a *amendsv1.TaskAssign) { a.GetExecute().Action.Tenant = "other" }, "scope_denied", false},
		"another order":    {func(a *amendsv1.TaskAssign) { a.Contract.Scope.OrderId = "9001" }, "scope_denied", false},
		"another customer": {func(a *amendsv1.TaskAssign) { a.Contract.Scope.CustomerId = "cust_1" }, "scope_denied", false},
		"expired":          {func(a *amendsv1.TaskAssign) { a.Contract.Expires = timestamppb.New(time.Now().Add(-time.Second)) }, "contract_expired", true},
		"a settlement of another slice": {func(a *amendsv1.TaskAssign) {
			a.Input = &amendsv1.TaskAssign_Confirm{Confirm: &amendsv1.ConfirmOrder{Action: a.GetExecute().GetAction()}}
		}, "slice_mismatch", false},
		"a decision that settles nothing": {func(a *amendsv1.TaskAssign) {
			settle := d.settle(a.GetExecute().GetAction(), "rf_1")
			settle.GetSettle().GetDecision().Step = amendsv1.CustodyStep_CUSTODY_STEP_TAKE
			a.Input, a.Contract.Slice = settle.GetInput(), amendsv1.Slice_SLICE_SETTLE
		}, "action_malformed", false},
		"confirmation of another tenant's order": {func(a *amendsv1.TaskAssign) {
			other := proto.CloneOf(a.GetExecute().GetAction())
			other.Tenant = "other"
			a.Input, a.Contract.Slice = confirm(other).GetInput(), amendsv1.Slice_SLICE_CONFIRM
		}, "scope_denied", false},
		"a key of its own": {func(a *amendsv1.TaskAssign) { a.GetExecute().Action.Refunds[0].IdempotencyKey = "refund:fresh" }, "action_malformed", false},
		"no such currency": {func(a *amendsv1.TaskAssign) { a.GetExecute().Action.Refunds[0].Amount.Currency = "XXQ" }, "action_malformed", false},
	} {
		assign := execute(duplicate("8472", 50000))
		c.change(assign)
		e, ok := d.answer(d.send(assign)).(*amendsv1.TaskError)
		if !ok || e.GetReason() != c.want || e.GetRetryable() != c.retryable {
			t.Errorf("%s: %v", name, e)
		}
		dead++
		bustest.Await(t, "a dead letter for "+name, func() bool { return d.stored(roles.StreamDeadLetters) == dead })
	}
	d.noRefund("8472")
	if n := d.stored(roles.StreamEffects); n != 0 {
		t.Errorf("%d effect entries", n)
	}
}
