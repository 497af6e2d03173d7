package casework_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// BUDGET-1: what a case hands out counts from the moment it does, so consumed and
// outstanding together stay within the root; late and refused work is in the
// totals, and apart.
func TestLateAndRefusedWorkIsInTheTotalsBUDGET1(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.lim.Attempts = 100
	w.post(supported())
	var tokens, wasted uint32
	work := func(task casework.Task, used uint32, reason string) {
		e, _ := w.work(task).(*amendsv1.PaymentEvidence)
		e.Usage = &amendsv1.Usage{ModelTokens: used, Actions: 1}
		tokens += used
		in := w.reply(task, e)
		w.apply(in)
		if reason != "" {
			wasted += used
			if got := w.refusedWith(); got != reason {
				t.Errorf("%d tokens: refused with %q, want %q", used, got, reason)
			}
		}
		c := w.rec.GetConsumption()
		if c.GetModelTokens() != tokens || c.GetWastedModelTokens() != wasted {
			t.Errorf("%d tokens, %d of them wasted; want %d and %d", c.GetModelTokens(), c.GetWastedModelTokens(), tokens, wasted)
		}
	}
	handedOut := func() (n int) {
		for _, node := range w.rec.GetTasks() {
			n += len(node.GetAttempts())
		}
		return n
	}
	old := w.mustTask(amendsv1.Slice_SLICE_PAYMENT)
	for range 60 {
		if _, open := w.task(amendsv1.Slice_SLICE_PAYMENT); !open {
			break
		}
		w.due() // the lease ends, another attempt begins
		if n := w.rec.GetConsumption().GetDelegations(); int(n) != handedOut() || int(n) > w.lim.DelegationsOf(w.rec) {
			t.Fatalf("%d delegations are counted of %d handed out; the root is %d", n, handedOut(), w.lim.DelegationsOf(w.rec))
		}
	}
	w.is("HUMAN_HANDOFF")
	if got := w.rec.GetCustody().GetReason(); got != "delegations_spent" {
		t.Fatalf("the case is with people because of %s", got)
	}
	work(old, 500, "lease_expired")

	w, tokens, wasted = newWorld(t, ledger8472(true)), 0, 0
	w.post(supported())
	work(w.mustTask(amendsv1.Slice_SLICE_PAYMENT), uint32(w.lim.TaskTokens)+1, "over_budget")
}
