package casework_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func (w *world) refusedLast() string {
	h := w.rec.GetHandled()
	return h[len(h)-1].GetRefused()
}

func (w *world) cancelAs(customer string) {
	w.tb.Helper()
	w.apply(w.input("gateway", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"}, func(e *amendsv1.Envelope) { e.CustomerId = customer }))
}

// A withdrawal does not end the search for a refund in doubt: the executor is
// asked for the same action again, not only what became of it (MONEY-3).
func TestCancelWhileTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	w := requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN)
	w.cancelAs("cust_5519")
	c := w.mustTask(amendsv1.Slice_SLICE_CANCEL)
	w.apply(w.reply(c, w.effect(amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, nil)))
	w.due()
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_REFUNDED {
		t.Errorf("state %s", casework.StateName(w.rec.GetState()))
	}
	w.replays()

	w = requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
	w.rec.CancelRevision = 1 // withdrawn before the outcome became undecidable
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN)
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_CANCELLED {
		t.Errorf("a proven withdrawal leaves the case %s", casework.StateName(w.rec.GetState()))
	}
}

// A flood of inputs that change nothing cannot keep out the ones that do
// (LIVE-1, MONEY-3).
func TestFullCaseStillTakesWhatMovesIt(t *testing.T) {
	t.Parallel()
	w := requested(t)
	exec := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	full := 0
	for range w.lim.Inputs + 10 {
		junk := w.input("composer", &amendsv1.TaskError{Reason: "junk"}, func(e *amendsv1.Envelope) { e.TaskId, e.Attempt = "task-8472-none", 1 })
		c, err := casework.Decide(w.rec, junk, w.lim)
		if errors.Is(err, casework.ErrFull) {
			full++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		w.rec = c.GetRecord()
	}
	cancel := w.input("gateway", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"}, nil)
	if _, err := casework.Decide(w.rec, cancel, w.lim); full == 0 || !errors.Is(err, casework.ErrFull) {
		t.Errorf("a full case took another: %d refused, %v", full, err)
	}
	w.apply(w.reply(exec, w.work(exec)))
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_REFUNDED {
		t.Errorf("the acknowledgement did not get through: %s", casework.StateName(w.rec.GetState()))
	}
}

// Bug B15: a refund that reads back as failed is no refund, whatever the first
// answer said.
func TestReadBackDecidesB15(t *testing.T) {
	t.Parallel()
	w := requested(t)
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	e.Refunds[0].ReadBack = &amendsv1.Refund{RefundId: "rf_5521", PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Status: amendsv1.RefundStatus_REFUND_STATUS_FAILED}
	w.apply(w.reply(task, e))
	w.want("HUMAN_HANDOFF", 7)
}

// The broker's time of an approval decides, not whether its timer came first.
func TestApprovalInTimeDoesNotLoseToItsTimer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.settle()
	in := w.decision(approve, "maya", "apr-8472-1", true)
	w.now = w.rec.GetAction().GetExpires().AsTime().Add(time.Second)
	if _, err := casework.Decide(w.rec, w.input("orchestrator", &amendsv1.TimerDue{}, nil), w.lim); !errors.Is(err, casework.ErrNothingDue) {
		t.Errorf("the timer acts at once: %v", err)
	}
	w.apply(in) // stored before, handled after
	w.want("REFUND_REQUESTED", 6)

	late := newWorld(t, ledger8472(true))
	late.post(supported())
	late.settle()
	late.now = late.rec.GetAction().GetExpires().AsTime()
	late.apply(late.decision(approve, "maya", "apr-8472-1", true))
	if late.refusedLast() != "approval_expired" {
		t.Errorf("an approval after its expiry is %q", late.refusedLast())
	}
}

// An acknowledgement counts from an attempt that was held before, too.
func TestHeldAttemptCanStillBeAcknowledged(t *testing.T) {
	t.Parallel()
	w := requested(t)
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	answer := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_HELD)
	ack := w.reply(task, answer)
	w.apply(ack)
	w.want("REFUNDED", 8)
}

// Any number of withdrawals asks the executor once, and jams nothing.
func TestManyCancels(t *testing.T) {
	t.Parallel()
	w := requested(t)
	for range 40 {
		w.cancelAs("cust_5519")
	}
	if n := len(w.rec.GetTasks()); n > 6 {
		t.Errorf("%d tasks", n)
	}
	w.due()
	exec := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	w.apply(w.reply(exec, w.work(exec)))
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_REFUNDED {
		t.Errorf("state %s", casework.StateName(w.rec.GetState()))
	}
	w.replays()
}

// A withdrawal is not forgotten when the executor proves that nothing was done.
func TestWithdrawalSurvivesOtherAnswers(t *testing.T) {
	t.Parallel()
	for name, walk := range map[string]func(*world){
		"held, then the cancel task fails": func(w *world) {
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_HELD)
			w.cancelAs("cust_5519")
			c := w.mustTask(amendsv1.Slice_SLICE_CANCEL)
			w.apply(w.reply(c, &amendsv1.TaskError{Reason: "deadline_passed", Retryable: true, MessageId: c.Envelope.GetMessageId()}))
			w.due()
		},
		"unknown, then proven undone": func(w *world) {
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN)
			w.cancelAs("cust_5519")
			c := w.mustTask(amendsv1.Slice_SLICE_CANCEL)
			w.apply(w.reply(c, w.effect(amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, nil)))
			w.due()
			exec := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
			w.apply(w.reply(exec, w.effect(amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, nil)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := requested(t)
			walk(w)
			c := w.mustTask(amendsv1.Slice_SLICE_CANCEL)
			w.apply(w.reply(c, w.work(c)))
			if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_CANCELLED {
				t.Errorf("state %s", casework.StateName(w.rec.GetState()))
			}
			w.replays()
		})
	}
}

// Nobody else's words or events move a case (TENANT-1, STATE-2).
func TestForeignInputsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.cancelAs("cust_other")
	if w.refusedLast() != "customer_mismatch" || w.rec.GetState() != amendsv1.CaseState_CASE_STATE_INVESTIGATING {
		t.Errorf("a stranger's cancel: %q, %s", w.refusedLast(), casework.StateName(w.rec.GetState()))
	}
	event := func(order, kind, object string) {
		w.apply(w.input("gateway", &amendsv1.ProviderEvent{OrderId: order, Kind: kind, ObjectId: object}, nil))
	}
	event("9999", "capture.settled", "pay_x")
	if w.refusedLast() != "order_mismatch" {
		t.Errorf("another order's event: %q", w.refusedLast())
	}
	w.settle()
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	w.settle()
	event("8472", "refund.failed", "rf_of_somebody")
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED {
		t.Errorf("somebody's refund reopened the case: %s", casework.StateName(w.rec.GetState()))
	}
	event("8472", "refund.failed", "rf_5521")
	w.status = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	confirm := w.mustTask(amendsv1.Slice_SLICE_CONFIRM)
	w.apply(w.reply(confirm, w.work(confirm)))
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
		t.Errorf("the case's own refund failed and it is %s", casework.StateName(w.rec.GetState()))
	}
}

// A hold for want of a policy looks the policy up again.
func TestRecheckAsksThePolicyAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	pay, pol := w.mustTask(amendsv1.Slice_SLICE_PAYMENT), w.mustTask(amendsv1.Slice_SLICE_POLICY)
	w.apply(w.reply(pay, w.work(pay)))
	missing := policyV4()
	missing.Outcome, missing.Passage, missing.Rule = amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE, nil, nil
	w.apply(w.reply(pol, missing))
	w.want("HOLD_FOR_EVIDENCE", 5)
	w.settle()
	w.due()
	w.mustTask(amendsv1.Slice_SLICE_POLICY)
	w.settle()
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL {
		t.Errorf("state %s", casework.StateName(w.rec.GetState()))
	}
}

// A text that withdraws where nothing can be withdrawn is still recorded.
func TestWithdrawalIsAlwaysRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	person := supported()
	person.Outcome = amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON
	w.post(person)
	w.settle()
	before := len(w.rec.GetMessages())
	in := w.input("gateway", &amendsv1.CustomerMessage{Channel: "web", Message: &amendsv1.UntrustedText{Text: "please cancel my request", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER}, BodySha256: w.rec.GetBodySha256(), PostedBy: "k"}, nil)
	in.Triage = supported()
	in.Triage.Outcome = amendsv1.TriageOutcome_TRIAGE_OUTCOME_CANCEL
	w.apply(in)
	if len(w.rec.GetMessages()) != before+1 {
		t.Errorf("the withdrawal was not recorded: %s", w.refusedLast())
	}
}

// A verdict that its own checks contradict verifies nothing (TRUTH-1).
func TestContradictoryVerificationIsARejection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(false))
	w.post(supported())
	for _, s := range []amendsv1.Slice{amendsv1.Slice_SLICE_PAYMENT, amendsv1.Slice_SLICE_POLICY, amendsv1.Slice_SLICE_COMPOSE} {
		task := w.mustTask(s)
		w.apply(w.reply(task, w.work(task)))
	}
	v := w.mustTask(amendsv1.Slice_SLICE_VERIFY)
	w.apply(w.reply(v, &amendsv1.Verification{
		Verdict: amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED, DraftSha256: evidence.TextSHA256(w.rec.GetDraft().GetText()),
		Checks: []*amendsv1.ClaimCheck{{What: "amount", Found: "₹9", Reason: "unsupported_amount"}},
	}))
	if w.lastRow() != "reply.rejected" || len(w.rec.GetReplies()) != 0 {
		t.Errorf("row %s, %d replies", w.lastRow(), len(w.rec.GetReplies()))
	}
}

// Two provider events that change nothing do not use up the proposals.
func TestProviderEventsGiveTheProposalBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.settle()
	for range 3 {
		w.apply(w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: "capture.settled", ObjectId: "pay_8472_b"}, nil))
		w.settle()
	}
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL || w.rec.GetConsumption().GetProposals() != 1 {
		t.Errorf("state %s after %d proposals", casework.StateName(w.rec.GetState()), w.rec.GetConsumption().GetProposals())
	}
}

// Every task that leaves has an input its receiver can accept: odd ledgers too.
func TestOddLedgersGiveSoundTasks(t *testing.T) {
	t.Parallel()
	one := ledger8472(false)
	one.Captures = one.Captures[1:]
	many := ledger8472(true)
	for i := range 18 {
		c := proto.CloneOf(many.GetCaptures()[1])
		c.PaymentId = fmt.Sprintf("pay_8472_x%02d", i)
		many.Captures = append(many.Captures, c)
	}
	for name, ledger := range map[string]*amendsv1.PaymentEvidence{"one hold": one, "twenty captures": many} {
		w := newWorld(t, ledger)
		w.post(supported())
		w.settle()
		for _, task := range w.tasks() {
			t.Errorf("%s: %s is still open", name, task.Envelope.GetTaskId())
		}
		if len(w.rec.GetReplies()) == 0 {
			t.Errorf("%s: no reply in %s", name, casework.StateName(w.rec.GetState()))
		}
	}
}
