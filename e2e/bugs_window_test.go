package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
)

// Bug B04: a refund call has no answer, the executor is away until the case is
// left to people, and when it is back, 25 hours later, the provider has long
// forgotten the key. It looks before it does anything: a refund that is there
// is found and not asked for again; where none is, that is proven, and the
// approval of yesterday moves nothing today.
func TestForgottenKeyIsLookedUpFirstB04(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   sandbox.Fault
		refunds int
		row     string
		ended   func(deskapi.View) bool
	}{
		{"made", sandbox.Fault{Kind: sandbox.AnswerLost, Times: 1}, 1, "effect.found", closed},
		{"not made", sandbox.Fault{Kind: sandbox.ErrorBefore, Code: 500, Times: 1, On: []string{"writes"}}, 0, "effect.refused.reconciling", in("HUMAN_HANDOFF")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := deskclock.New(time.Now(), time.Now)
			clock.Run()
			w := start(t, allinone.Options{NoSync: true, Clock: clock})
			w.orders(1, true)
			w.faults(c.fault, sandbox.Fault{Kind: sandbox.WebhookLost})
			auditor, err := w.Auditor()
			if err != nil {
				t.Fatal(err)
			}
			defer auditor.Close()
			id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
			if _, err := w.staff.Decide(w.ctx, w.decides(allinone.Approver, id, waiting.Version, clock.Now())); err != nil {
				t.Fatal(err)
			}
			unknown := w.reaches(id, waiting.Version+2)
			if f := w.Faults(); f[0].Struck != 1 || !unknown.GetOutcomeUnknown() {
				t.Fatalf("the outcome is known: %v, %v", f, unknown.GetEffect())
			}
			executor := roles.TaskConsumer(roles.RefundExecutor)
			if err := auditor.Hold(w.ctx, executor, true); err != nil {
				t.Fatal(err)
			}
			if rec := w.stalls(unknown, clock); casework.StateName(rec.GetState()) != "RECONCILING" {
				t.Fatalf("the case is %s", casework.StateName(rec.GetState()))
			}
			if err := auditor.AdvanceTo(w.ctx, clock.Now().Add(25*time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := auditor.Hold(w.ctx, executor, false); err != nil {
				t.Fatal(err)
			}
			w.until(id, waiting.Version, c.ended)
			w.quiet()
			if in := w.intents("8472"); len(in) != 1 || in[0].GetCalls() != 1 {
				t.Errorf("the call was repeated after the key's window: %v", in)
			}
			if made := w.refunds(); len(made) != c.refunds {
				t.Errorf("MONEY-1: refunds %+v", made)
			}
			if rows := w.rows(id); count(rows, c.row) != 1 {
				t.Errorf("rows %q", slices.Compact(rows))
			}
		})
	}
}
