package executor_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/executor"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// sameCalls fails unless every call for an order carried the same key and the
// same bytes (bugs B01, B02, B07).
func (d *desk) sameCalls(order string, least int) {
	d.t.Helper()
	calls := d.front.creates(order)
	if len(calls) < least {
		d.t.Errorf("%d calls for order %s, want at least %d", len(calls), order, least)
	}
	for _, c := range calls {
		if c != calls[0] {
			d.t.Errorf("call %+v differs from %+v", c, calls[0])
		}
	}
}

// Bug B21: the same action many times at once, on two executors, and again
// after a restart: one refund, and everybody is told of it.
func TestManyAtOnceAndAfterARestartMakeOneRefundB21MONEY1(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	a := duplicate("8472", 200000)
	task := execute(a, d.sign(d.maya, a, 1))
	var asked []string
	for range 8 {
		n := d.send(task)
		d.resend(task, n) // the same message once more
		asked = append(asked, n)
	}
	stopOne, stopTwo := d.run(), d.run()
	for _, n := range asked {
		res, _ := d.answer(n).(*amendsv1.EffectResult)
		d.expect("one of many", res, acknowledged, "")
	}
	stopOne()
	stopTwo()
	d.run()
	res := d.ask(task)
	d.expect("after a restart", res, acknowledged, "")
	if id := res.GetRefunds()[0].GetOutcome().GetRefundId(); id != "rf_5521" {
		t.Errorf("refund %s", id)
	}
	d.onlyRefund("8472", 200000)
	d.sameCalls("8472", 1)
}

// Two cases want the same excess back, each from another payment, with valid
// approvals: one gets it (MONEY-4).
func TestTwoCasesShareOneExcessMONEY4(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	d.run()
	for i := range 5 {
		order := fmt.Sprintf("o%d", i)
		d.order(order, 200000, 2)
		one, two := duplicate(order, 200000), ofCase(action(order, refund{"pay_" + order + "_a", 200000}), "req-other-"+order)
		first, second := d.send(execute(one, d.sign(d.maya, one, 1))), d.send(execute(two, d.sign(d.ravi, two, 1)))
		won := 0
		for _, n := range []string{first, second} {
			res, _ := d.answer(n).(*amendsv1.EffectResult)
			switch res.GetClass() {
			case acknowledged:
				won++
			default:
				d.expect("the other", res, refused, ledger.ReasonNotOverpaid)
			}
		}
		if won != 1 {
			t.Errorf("%d of two cases got the excess of order %s", won, order)
		}
		d.onlyRefund(order, 200000)
	}
}

var errCrash = errors.New("crash")

// A crash between any two steps of a refund, then redelivery: one refund, the
// same key and bytes on every call, and an answer that names it (bugs B01,
// B02, B07, B28).
func TestACrashAtAnyStepMakesOneRefundMONEY1B01B28(t *testing.T) {
	t.Parallel()
	d := open(t)
	var place atomic.Value // of executor.Step: crash there, once
	place.Store(executor.Step(""))
	d.run(func(_ *executor.Config, deps *executor.Deps) {
		deps.Reached = func(_ context.Context, s executor.Step, _ string) error {
			if place.CompareAndSwap(s, executor.Step("")) {
				return errCrash
			}
			return nil
		}
	})
	for _, step := range []executor.Step{executor.IntentDurable, executor.Called, executor.OutcomeDurable} {
		for _, twice := range []bool{false, true} {
			order := fmt.Sprintf("%s_%t", step, twice)
			payments := 2
			var refunds []refund
			if twice { // an action of two refunds, cut off in its middle
				payments = 3
				refunds = []refund{{"pay_" + order + "_b", 200000}, {"pay_" + order + "_c", 200000}}
			} else {
				refunds = []refund{{"pay_" + order + "_b", 200000}}
			}
			d.order(order, 200000, payments)
			a := action(order, refunds...)
			place.Store(step)
			res := d.ask(execute(a, d.sign(d.maya, a, 1)))
			d.expect(order, res, acknowledged, "")
			if n, sum := d.refunds(order); n != len(refunds) || sum != int64(len(refunds))*200000 {
				t.Errorf("%s: %d refunds of %d", order, n, sum)
			}
			keys := map[string]string{}
			for _, c := range d.front.creates(order) {
				if body, ok := keys[c.key]; ok && body != c.body {
					t.Errorf("%s: key %s carried two bodies", order, c.key)
				}
				keys[c.key] = c.body
			}
			if len(keys) != len(refunds) {
				t.Errorf("%s: keys %v", order, keys)
			}
		}
	}
	if n := d.stored(roles.StreamDeadLetters); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// flaky stands between the executor and the bus: writes to effect entries may
// report that nobody knows, stored or not, or that they lost a race.
type flaky struct {
	executor.Records
	writes  atomic.Int64
	unknown func(write int64) (stored, uncertain bool)
}

func (f *flaky) Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error) {
	if p, err := subject.Parse(subj); err != nil || p.Kind != subject.KindEffect {
		return f.Records.Publish(ctx, subj, data, opts...)
	}
	stored, uncertain := f.unknown(f.writes.Add(1))
	if !uncertain {
		return f.Records.Publish(ctx, subj, data, opts...)
	}
	if stored {
		if _, err := f.Records.Publish(ctx, subj, data, opts...); err != nil {
			return 0, err
		}
	}
	return 0, bus.ErrUncertain
}

// A write whose acknowledgement is lost is looked up, never assumed: stored or
// not, intent or outcome, there is one refund and its outcome is recorded.
func TestALostAcknowledgementIsLookedUpMONEY1(t *testing.T) {
	t.Parallel()
	d := open(t)
	for i, unknown := range []func(int64) (bool, bool){
		func(n int64) (bool, bool) { return true, n == 1 },
		func(n int64) (bool, bool) { return false, n == 1 },
		func(n int64) (bool, bool) { return true, n == 2 },
		func(n int64) (bool, bool) { return false, n == 2 },
		func(n int64) (bool, bool) { return n%4 == 1, n%2 == 1 },
	} {
		stop := d.runThrough(func(r executor.Records) executor.Records { return &flaky{Records: r, unknown: unknown} })
		order := fmt.Sprintf("o%d", i)
		d.order(order, 200000, 2)
		a := duplicate(order, 200000)
		d.expect(order, d.ask(execute(a, d.sign(d.maya, a, 1))), acknowledged, "")
		stop()
		d.onlyRefund(order, 200000)
		d.sameCalls(order, 1)
		if o := d.entry(order).GetIntents()[0].GetOutcome(); o.GetRefundId() == "" {
			t.Errorf("%s: outcome %v", order, o)
		}
	}
}

// An outcome that cannot be written is an evidence gap: the task is tried
// again, and when nothing helps the answer says that the record is missing.
func TestAnOutcomeThatCannotBeWrittenIsAGap(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	stop := d.runThrough(func(r executor.Records) executor.Records {
		return &broken{Records: r}
	})
	a := duplicate("8472", 200000)
	task := execute(a, d.sign(d.maya, a, 1))
	res := d.ask(task)
	d.expect("no record", res, gap, "outcome_not_recorded")
	if o := res.GetRefunds()[0].GetOutcome(); o.GetRefundId() != "rf_5521" {
		t.Errorf("outcome %v", o)
	}
	stop()
	d.run()
	d.expect("when it can be written again", d.ask(task), acknowledged, "")
	d.onlyRefund("8472", 200000)
	d.sameCalls("8472", 2)
}

// broken refuses every outcome and lets intents pass.
type broken struct{ executor.Records }

func (b *broken) Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error) {
	if p, err := subject.Parse(subj); err == nil && p.Kind == subject.KindEffect && hasOutcome(data) {
		return 0, bus.ErrDenied
	}
	return b.Records.Publish(ctx, subj, data, opts...)
}

func hasOutcome(data []byte) bool {
	e := new(amendsv1.EffectEntry)
	return proto.Unmarshal(data, e) == nil && len(e.GetIntents()) > 0 && e.GetIntents()[0].GetOutcome() != nil
}
