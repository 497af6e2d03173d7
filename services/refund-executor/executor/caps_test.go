package executor_test

import (
	"fmt"
	"testing"

	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/executor"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// AUTH-2: whoever holds the orchestrator's credential gets no more out of the
// executor without an approver's key than its caps, from its own records.
func TestWithoutApprovalOnlyTheCapsAUTH2(t *testing.T) {
	t.Parallel()
	d := open(t)
	edit := func(c *executor.Config, _ *executor.Deps) {
		c.Limits[0].CapTenantHour, c.Limits[0].CapRefund = 250000, 95000
	}
	stopOne, stopTwo := d.run(edit), d.run(edit)
	d.order("high", 99999, 2)
	d.expect("over the cap of one refund", d.ask(execute(duplicate("high", 99999))), refused, ledger.ReasonCapRefund)

	var asked []string
	for i := range 6 { // 540,000 at once, on two executors
		order := fmt.Sprintf("o%d", i)
		d.order(order, 90000, 2)
		asked = append(asked, d.send(execute(duplicate(order, 90000))))
	}
	made := 0
	for i, n := range asked {
		order := fmt.Sprintf("o%d", i)
		res, _ := d.answer(n).(*amendsv1.EffectResult)
		if res.GetClass() == acknowledged {
			made++
			d.onlyRefund(order, 90000)
			continue
		}
		d.expect("over the hour's cap", res, refused, ledger.ReasonCapHour)
		d.noRefund(order)
	}
	if made != 2 {
		t.Errorf("%d refunds of 90,000 under a cap of 250,000", made)
	}
	if n := d.stored(roles.StreamEffects); n != 2*3 {
		t.Errorf("%d synced writes for two unapproved refunds, want reservation, intent and outcome each", n)
	}
	stopOne()
	stopTwo()
	d.run(edit)
	d.order("later", 90000, 2)
	a := duplicate("later", 90000)
	d.expect("after a restart", d.ask(execute(a)), refused, ledger.ReasonCapHour)
	d.expect("with a person", d.ask(execute(a, d.sign(d.maya, a, 1))), acknowledged, "")
}
