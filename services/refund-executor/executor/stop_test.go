package executor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/executor"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// The stop holds every new effect, per tenant and everywhere; the case keeps
// its place and goes on when it is lifted. A switch that cannot be read is set.
func TestTheStopHolds(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	for i, scope := range []string{tenant, subject.StopAll} {
		order := fmt.Sprintf("o%d", i)
		d.order(order, 200000, 2)
		a := duplicate(order, 200000)
		task := execute(a, d.sign(d.maya, a, 1))
		d.stop(scope, true)
		d.expect(scope+" stopped", d.ask(task), held, "stopped")
		d.noRefund(order)
		d.stop(scope, false)
		d.expect(scope+" lifted", d.ask(task), acknowledged, "")
		d.stop(scope, true)
		d.expect(scope+" stopped again, already done", d.ask(task), acknowledged, "")
		d.stop(scope, false)
		d.onlyRefund(order, 200000)
	}
	d.stop("other-tenant", true)
	d.order("o9", 50000, 2)
	d.expect("another tenant's stop", d.ask(execute(duplicate("o9", 50000))), acknowledged, "")
	if _, err := d.console.Publish(t.Context(), subject.Control(tenant), []byte("not a switch")); err != nil {
		t.Fatal(err)
	}
	d.order("o10", 50000, 2)
	d.expect("unreadable switch", d.ask(execute(duplicate("o10", 50000))), held, "stopped")
}

// A stop pulled between the intent and the call holds the call, and what was
// begun is provably undone: it can be withdrawn, or goes on later.
func TestAStopAfterTheIntentHoldsTheCall(t *testing.T) {
	t.Parallel()
	d := open(t)
	pull := func(_ *executor.Config, deps *executor.Deps) {
		deps.Reached = func(_ context.Context, s executor.Step, _ string) error {
			if s == executor.IntentDurable {
				d.stop(tenant, true)
			}
			return nil
		}
	}
	stop := d.run(pull)
	tasks := map[string]*amendsv1.TaskAssign{}
	for _, order := range []string{"goes-on", "withdrawn"} {
		d.stop(tenant, false)
		d.order(order, 200000, 3)
		a := action(order, refund{"pay_" + order + "_b", 200000}, refund{"pay_" + order + "_c", 200000})
		tasks[order] = execute(a, d.sign(d.maya, a, 1))
		d.expect(order, d.ask(tasks[order]), held, "stopped")
		d.noRefund(order)
		e := d.entry(order)
		for _, in := range e.GetIntents() {
			if in.GetOutcome().GetClass() != noEffect || len(e.GetSums()) != 0 {
				t.Errorf("%s: intent %v", order, in)
			}
		}
	}
	stop()
	d.stop(tenant, false)
	d.run()
	d.expect("goes on", d.ask(tasks["goes-on"]), acknowledged, "")
	if n, sum := d.refunds("goes-on"); n != 2 || sum != 400000 {
		t.Errorf("%d refunds of %d", n, sum)
	}
	d.expect("cancel", d.ask(cancel(tasks["withdrawn"].GetExecute().GetAction())), notBegun, ledger.ReasonCancelled)
	d.expect("execute after cancel", d.ask(tasks["withdrawn"]), notBegun, ledger.ReasonCancelled)
	d.noRefund("withdrawn")
}

// A stop pulled while a refund is in doubt holds the resend; the doubt stays
// and is told.
func TestAStopHoldsTheResend(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	d.run()
	a := duplicate("8472", 200000)
	task := execute(a, d.sign(d.maya, a, 1))
	d.front.disturb(loseRequest)
	d.expect("request lost", d.ask(task), unknown, "connection_lost")
	d.front.disturb(nil)
	d.stop(tenant, true)
	res := d.ask(task)
	d.expect("stopped in doubt", res, held, "stopped")
	if len(res.GetRefunds()) != 1 || res.GetRefunds()[0].GetOutcome().GetClass() != unknown {
		t.Errorf("the doubt is not told: %v", res)
	}
	d.expect("cancel in doubt", d.ask(cancel(a)), unknown, "connection_lost")
	d.stop(tenant, false)
	d.expect("lifted", d.ask(task), acknowledged, "")
	d.onlyRefund("8472", 200000)
	d.sameCalls("8472", 2)
}

// A refund in doubt may always be looked up, also while a stop is set and by
// a cancel: what was made is found without a call (TRUTH-2).
func TestADoubtIsLookedUpWhileStopped(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	for order, ask := range map[string]func(*amendsv1.TaskAssign) *amendsv1.TaskAssign{
		"execute": func(a *amendsv1.TaskAssign) *amendsv1.TaskAssign { return a },
		"cancel":  func(a *amendsv1.TaskAssign) *amendsv1.TaskAssign { return cancel(a.GetExecute().GetAction()) },
	} {
		d.order(order, 200000, 2)
		a := duplicate(order, 200000)
		task := execute(a, d.sign(d.maya, a, 1))
		d.front.disturb(loseAnswer)
		d.expect(order+": answer lost", d.ask(task), unknown, "connection_lost")
		d.front.disturb(nil)
		d.stop(tenant, true)
		d.expect(order+": stopped", d.ask(ask(task)), acknowledged, "")
		d.stop(tenant, false)
		d.onlyRefund(order, 200000)
		d.sameCalls(order, 1)
		if calls := d.front.creates(order); len(calls) != 1 {
			t.Errorf("%s: %d calls", order, len(calls))
		}
	}
}

// Cancel and execute: whichever is written first decides, and both are told
// the same. A stop does not hold a cancel.
func TestCancelOrExecuteWhicheverIsFirst(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	d.run()
	d.order("first", 200000, 2)
	a := duplicate("first", 200000)
	d.stop(tenant, true)
	res := d.ask(cancel(a))
	d.expect("cancel first", res, notBegun, ledger.ReasonCancelled)
	if res.GetCancelRevision() != 1 {
		t.Errorf("cancel revision %d", res.GetCancelRevision())
	}
	d.stop(tenant, false)
	d.expect("then execute", d.ask(execute(a, d.sign(d.maya, a, 1))), notBegun, ledger.ReasonCancelled)
	d.expect("cancel again", d.ask(cancel(a)), notBegun, ledger.ReasonCancelled)
	d.noRefund("first")

	d.order("second", 200000, 2)
	a = duplicate("second", 200000)
	d.expect("execute first", d.ask(execute(a, d.sign(d.maya, a, 1))), acknowledged, "")
	d.expect("then cancel", d.ask(cancel(a)), acknowledged, "")

	for i := range 8 {
		order := fmt.Sprintf("race%d", i)
		d.order(order, 200000, 2)
		a := duplicate(order, 200000)
		one, other := execute(a, d.sign(d.maya, a, 1)), cancel(a)
		if i%2 == 1 {
			one, other = other, one
		}
		first, second := d.send(one), d.send(other)
		executed, cancelled := d.answer(first), d.answer(second)
		if i%2 == 1 {
			executed, cancelled = cancelled, executed
		}
		ran, _ := executed.(*amendsv1.EffectResult)
		gone, _ := cancelled.(*amendsv1.EffectResult)
		n, _ := d.refunds(order)
		switch gone.GetClass() {
		case notBegun:
			if ran.GetClass() != notBegun || n != 0 {
				t.Errorf("%s: cancelled, but executed as %v with %d refunds", order, ran.GetClass(), n)
			}
		case acknowledged, unknown: // begun, and perhaps not yet answered
			if ran.GetClass() != acknowledged || n != 1 {
				t.Errorf("%s: begun, but executed as %v with %d refunds", order, ran.GetClass(), n)
			}
		default:
			t.Errorf("%s: cancel answered %v", order, gone)
		}
	}
	if n := d.stored(roles.StreamDeadLetters); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}
