package e2e_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/executor"
)

// Path C, with processes of their own: the provider has made the refund, and
// the executor is killed before it stores the answer. Nobody starts it again
// until the orchestrator's time is up: the outcome is unknown then, and never
// failed. A new executor sends the same bytes under the same key, the provider
// gives its first answer again, and the case closes with that one refund
// (MONEY-1, MONEY-2, TRUTH-2, bugs B01, B02, B06, B07).
func TestPathCTheCrashBetweenRequestAndAcknowledgementB01(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for the ten seconds the orchestrator waits")
	}
	d := startCrashDesk(t, 1)
	c := once(founding, at(roles.RefundExecutor, executor.Called, 1))
	c.stays = true
	c.story = &story{
		name: "path C", tasks: founding.tasks, minor: founding.minor, refunds: founding.refunds, approved: true, state: founding.state, reply: founding.reply,
		rows: found("merge.approval", "approved", "effect.overdue", "effect.acknowledged", "draft.returned", "reply.verified.closed"),
		play: func(d *crashDesk, i int) error {
			if err := d.opens(i); err != nil {
				return err
			}
			if err := d.approves(i); err != nil {
				return err
			}
			if err := d.recorded(i, "effect.overdue"); err != nil {
				return err
			}
			d.meanwhile(i)
			if err := d.spawn(roles.RefundExecutor); err != nil {
				return err
			}
			return d.until(i, closed)
		},
	}
	d.play([]*crash{c})

	calls := d.wire.of(orderID(0))
	if len(calls) < 2 {
		t.Fatalf("%d calls: the new executor did not ask again", len(calls))
	}
	for i, call := range calls {
		if call.key != "refund:req-8472:pay_8472_b" || call.body != calls[0].body || call.refund != "rf_5521" || call.replayed != (i > 0) {
			t.Errorf("call %d: %+v, the first %+v", i+1, call, calls[0])
		}
	}
	log := d.logs()[caseID(0)]
	for _, commit := range log {
		rec := commit.GetRecord()
		for _, e := range rec.GetTimeline() {
			switch e.GetState() {
			case handedOver, amendsv1.CaseState_CASE_STATE_DECLINED, amendsv1.CaseState_CASE_STATE_RECONCILING:
				t.Errorf("v%d is %s by %s", e.GetVersion(), casework.StateName(e.GetState()), e.GetRow())
			default:
			}
		}
	}
	rec := log[len(log)-1].GetRecord()
	if got := rec.GetEffect().GetRefunds(); len(got) != 1 || got[0].GetOutcome().GetRefundId() != "rf_5521" || rec.GetOutcomeUnknown() {
		t.Errorf("the record ends with %v, unknown %t", rec.GetEffect(), rec.GetOutcomeUnknown())
	}
}

// meanwhile looks at path C after the time-out, with the executor dead: the
// provider has the refund, the executor's ledger an intent without an outcome,
// and the case says neither refunded nor failed, to nobody.
func (d *crashDesk) meanwhile(i int) {
	if n := len(d.made()[orderID(i)]); n != 1 {
		d.t.Errorf("the provider has %d refunds", n)
	}
	if in := d.begun()[orderID(i)]; len(in) != 1 || in[0].GetOutcome() != nil {
		d.t.Errorf("the effect ledger holds %v", in)
	}
	rec, err := d.shown(i, 0)
	if err != nil {
		d.t.Error(err)
		return
	}
	if rec.GetState() != amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED || !rec.GetOutcomeUnknown() || len(rec.GetReplies()) != 0 {
		d.t.Errorf("TRUTH-2: the case is %s, unknown %t, with %d replies", casework.StateName(rec.GetState()), rec.GetOutcomeUnknown(), len(rec.GetReplies()))
	}
	v, err := d.gateway.View(d.ctx, caseID(i), "")
	if err != nil || v.State != "REFUND_REQUESTED" || len(v.Replies) != 0 {
		d.t.Errorf("TRUTH-1: the customer sees %s with %+v, %v", v.State, v.Replies, err)
	}
}
