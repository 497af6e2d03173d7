package casework_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const approve, deny = amendsv1.Verdict_VERDICT_APPROVE, amendsv1.Verdict_VERDICT_DENY

// Path A of the founding request: the duplicate that is refunded, version by
// version (STATE-1, TRUTH-2).
func TestPathA(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.want("INVESTIGATING", 2)
	pay, pol := w.mustTask(amendsv1.Slice_SLICE_PAYMENT), w.mustTask(amendsv1.Slice_SLICE_POLICY)
	if pay.Envelope.GetTaskId() != "task-8472-pay" || pol.Envelope.GetTaskId() != "task-8472-pol" || pay.Envelope.GetParentTaskId() != "task-8472-root" {
		t.Errorf("tasks %s and %s under %s", pay.Envelope.GetTaskId(), pol.Envelope.GetTaskId(), pay.Envelope.GetParentTaskId())
	}
	w.apply(w.reply(pay, w.work(pay)))
	w.want("INVESTIGATING", 3)
	w.apply(w.reply(pol, w.work(pol)))
	w.want("AWAITING_APPROVAL", 5)
	a := w.rec.GetAction()
	if len(a.GetRefunds()) != 1 || a.GetRefunds()[0].GetIdempotencyKey() != "refund:req-8472:pay_8472_b" || a.GetRefunds()[0].GetAmount().GetMinor() != 200000 || a.GetCaseVersion() != 5 {
		t.Errorf("action %v", a)
	}
	if got := a.GetExpires().AsTime().Sub(a.GetCreated().AsTime()); got != 30*time.Minute {
		t.Errorf("action expires after %s", got)
	}
	if c := w.rec.GetConflicts(); len(c) != 1 || c[0].GetKind() != "unsupported_customer_claim" || c[0].GetResolvedBy() != "system_of_record" {
		t.Errorf("conflicts %v", c)
	}
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	w.want("REFUND_REQUESTED", 6)
	if w.rec.GetEffect() != nil {
		t.Error("TRUTH-2: an effect is recorded before the executor answered")
	}
	exec := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	w.apply(w.reply(exec, w.work(exec)))
	w.want("REFUNDED", 7)
	draft := w.mustTask(amendsv1.Slice_SLICE_COMPOSE)
	w.apply(w.reply(draft, w.work(draft)))
	w.want("REFUNDED", 8)
	verify := w.mustTask(amendsv1.Slice_SLICE_VERIFY)
	w.apply(w.reply(verify, w.work(verify)))
	w.want("VERIFIED_CLOSED", 9)
	if v := casework.View(w.rec); !v.GetClosed() || v.GetVersion() != 9 || len(v.GetReplies()) != 1 {
		t.Errorf("view %v", v)
	}
	if _, ok := casework.Next(w.rec); ok {
		t.Error("a closed case still waits for a deadline")
	}
}

// Path B: a hold is not a second payment. Nothing is refunded; the desk looks
// again after four hours.
func TestPathB(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(false))
	w.post(supported())
	for _, s := range []amendsv1.Slice{amendsv1.Slice_SLICE_PAYMENT, amendsv1.Slice_SLICE_POLICY} {
		task := w.mustTask(s)
		w.apply(w.reply(task, w.work(task)))
	}
	w.want("HOLD_FOR_EVIDENCE", 5)
	d := w.rec.GetDecision()
	if d.GetRefund() || d.GetEvidenceComplete() || d.GetReason() != "no_duplicate_settled_capture" || len(d.GetCallIds()) != 1 || d.GetCallIds()[0] != "call-8472-p3" {
		t.Errorf("decision %v", d)
	}
	if got := d.GetRecheckAt().AsTime().Sub(w.now); got != 4*time.Hour {
		t.Errorf("recheck after %s", got)
	}
	w.settle()
	w.want("HOLD_FOR_EVIDENCE", 7)
	if len(w.rec.GetReplies()) != 1 || w.rec.GetReplies()[0].GetKind() != amendsv1.ReplyKind_REPLY_KIND_HOLDING {
		t.Errorf("replies %v", w.rec.GetReplies())
	}

	t.Run("it settles", func(t *testing.T) {
		w.tb = t
		w.ledger = ledger8472(true)
		w.due()
		w.want("INVESTIGATING", 8)
		w.settle()
		w.want("AWAITING_APPROVAL", 10)
	})
}

// A hold that never ends goes to a person after six rechecks (LIVE-1).
func TestRechecksEndWithAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(false))
	w.post(supported())
	w.settle()
	for range 6 {
		w.due()
		w.settle()
		if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HOLD_FOR_EVIDENCE {
			t.Fatalf("state %s", casework.StateName(w.rec.GetState()))
		}
	}
	w.due()
	w.settle()
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF || w.rec.GetCustody() == nil {
		t.Errorf("after six rechecks the case is %s", casework.StateName(w.rec.GetState()))
	}
	if got := len(w.rec.GetReplies()); got != 2 {
		t.Errorf("%d replies, want one holding reply and one hand-off notice", got)
	}
	w.replays()
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) *world {
		w := newWorld(t, ledger8472(true))
		w.post(supported())
		w.settle()
		w.want("AWAITING_APPROVAL", 5)
		return w
	}
	t.Run("denied", func(t *testing.T) {
		w := ready(t)
		w.apply(w.decision(deny, "maya", "apr-8472-1", true))
		w.want("DECLINED", 6)
		w.settle()
		w.want("VERIFIED_CLOSED", 8)
		if w.rec.GetReplies()[0].GetKind() != amendsv1.ReplyKind_REPLY_KIND_EXPLAIN {
			t.Error("no explanation was sent")
		}
	})
	t.Run("invalid is recorded and changes nothing", func(t *testing.T) {
		w := ready(t)
		w.apply(w.decision(approve, "maya", "apr-8472-1", false))
		w.want("AWAITING_APPROVAL", 6)
		if h := w.rec.GetHandled(); h[len(h)-1].GetRefused() != "signature_invalid" {
			t.Errorf("refused as %q", h[len(h)-1].GetRefused())
		}
		if tl := w.rec.GetTimeline(); tl[len(tl)-1].GetActor() != "console" {
			t.Errorf("the timeline names %s, who signed nothing", tl[len(tl)-1].GetActor())
		}
	})
	t.Run("for another action", func(t *testing.T) {
		w := ready(t)
		in := w.decision(approve, "maya", "apr-8472-1", true)
		d, _ := in.Payload.(*amendsv1.SignedDecision)
		d.ActionSha256 = "ff" + d.GetActionSha256()[2:]
		again := w.input("console", d, nil) // sealed again with the change
		again.Approver = in.Approver
		w.apply(again)
		if h := w.rec.GetHandled(); h[len(h)-1].GetRefused() != "record_changed" {
			t.Errorf("refused as %q", h[len(h)-1].GetRefused())
		}
		if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL {
			t.Error("an approval of another action moved the case")
		}
	})
	t.Run("expired once, proposed again, expired again", func(t *testing.T) {
		w := ready(t)
		old := w.rec.GetActionSha256()
		w.due()
		w.want("INVESTIGATING", 6)
		w.settle()
		w.want("AWAITING_APPROVAL", 8)
		if w.rec.GetActionSha256() == old || w.rec.GetAction().GetProposal() != 2 {
			t.Error("the second proposal is not a fresh one")
		}
		w.due()
		w.want("HUMAN_HANDOFF", 9)
	})
	t.Run("two approvers above the second threshold", func(t *testing.T) {
		w := newWorld(t, ledger8472(true))
		w.ledger.GetOrder().GetTotal().Minor = 5000000
		for _, c := range w.ledger.GetCaptures() {
			c.Amount.Minor = 5000000
		}
		w.post(supported())
		w.settle()
		w.apply(w.decision(approve, "maya", "apr-8472-1", true))
		w.want("AWAITING_APPROVAL", 6)
		w.apply(w.decision(approve, "maya", "apr-8472-2", true))
		w.want("AWAITING_APPROVAL", 7)
		w.apply(w.decision(approve, "ravi", "apr-8472-2", true))
		w.want("REFUND_REQUESTED", 8)
	})
}

func TestBelowThresholdNeedsNoPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.ledger.GetOrder().GetTotal().Minor = 99999
	for _, c := range w.ledger.GetCaptures() {
		c.Amount.Minor = 99999
	}
	w.post(supported())
	w.settle()
	w.want("VERIFIED_CLOSED", 8)
	if len(w.rec.GetApprovals()) != 0 || w.rec.GetEffect().GetRefunds()[0].GetAmount().GetMinor() != 99999 {
		t.Errorf("effect %v", w.rec.GetEffect())
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	cancel := func(w *world) {
		w.apply(w.input("gateway", &amendsv1.CaseCancel{Channel: "web", PostedBy: "web-key"}, nil))
	}
	t.Run("while the approval waits: the old approval is unusable", func(t *testing.T) {
		w := newWorld(t, ledger8472(true))
		w.post(supported())
		w.settle()
		late := w.decision(approve, "maya", "apr-8472-1", true)
		cancel(w)
		w.want("CANCELLED", 6)
		w.settle()
		w.want("CANCELLED", 8)
		w.apply(late)
		w.want("CANCELLED", 9)
		if len(w.tasks()) != 0 {
			t.Error("a cancelled case still has open tasks")
		}
	})
	t.Run("while the refund is asked for: the executor's answer decides", func(t *testing.T) {
		for _, begun := range []bool{false, true} {
			w := newWorld(t, ledger8472(true))
			w.post(supported())
			w.settle()
			w.apply(w.decision(approve, "maya", "apr-8472-1", true))
			exec := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
			cancel(w)
			w.want("REFUND_REQUESTED", 7)
			if begun {
				w.apply(w.reply(exec, w.work(exec)))
				w.want("REFUNDED", 8)
				continue
			}
			c := w.mustTask(amendsv1.Slice_SLICE_CANCEL)
			w.apply(w.reply(c, w.work(c)))
			w.want("CANCELLED", 8)
		}
	})
}

// Path C as the orchestrator sees it: no answer makes the outcome unknown,
// never failed, and the same key is asked for again (TRUTH-2).
func TestNoAnswerFromTheExecutor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.settle()
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	firstTask := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	w.due()
	w.want("REFUND_REQUESTED", 7)
	if !w.rec.GetOutcomeUnknown() {
		t.Error("outcome is not unknown")
	}
	again := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	if again.Envelope.GetTaskId() != firstTask.Envelope.GetTaskId() || again.Envelope.GetAttempt() != 2 ||
		!proto.Equal(again.Payload.GetExecute().GetAction(), firstTask.Payload.GetExecute().GetAction()) {
		t.Error("the second dispatch is not a new attempt of the same action")
	}
	w.apply(w.reply(firstTask, w.work(firstTask))) // the late answer of the first attempt is still the truth
	w.want("REFUNDED", 8)
}

func TestExecutorAnswers(t *testing.T) {
	t.Parallel()
	for class, want := range map[amendsv1.EffectClass]string{
		amendsv1.EffectClass_EFFECT_CLASS_REFUSED:     "HUMAN_HANDOFF",
		amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN:     "REFUND_REQUESTED",
		amendsv1.EffectClass_EFFECT_CLASS_HELD:        "REFUND_REQUESTED",
		amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT:   "REFUND_REQUESTED",
		amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE: "RECONCILING",
	} {
		w := newWorld(t, ledger8472(true))
		w.post(supported())
		w.settle()
		w.apply(w.decision(approve, "maya", "apr-8472-1", true))
		task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
		w.apply(w.reply(task, w.effect(class, nil)))
		w.want(want, 7)
		if want == "HUMAN_HANDOFF" {
			continue
		}
		w.due() // LIVE-1: the same key is asked for again without anybody remembering it
		again := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
		w.apply(w.reply(again, w.work(again)))
		w.want("REFUNDED", 9)
	}
}

func TestUnclearMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	unclear := &amendsv1.Triage{Intents: []string{"duplicate_charge_refund"}, Outcome: amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY, Reason: "order_not_found", Engine: "deterministic/1"}
	w.post(unclear)
	w.want("AWAITING_CUSTOMER", 2)
	w.settle()
	w.want("AWAITING_CUSTOMER", 4)
	answer := func(tr *amendsv1.Triage) {
		in := w.input("gateway", &amendsv1.CustomerMessage{Channel: "web", Message: &amendsv1.UntrustedText{Text: "8472", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER}, BodySha256: w.rec.GetBodySha256(), PostedBy: "k"}, nil)
		in.Triage = tr
		w.apply(in)
	}
	answer(supported())
	w.want("INVESTIGATING", 6)
	w.settle()
	w.want("AWAITING_APPROVAL", 9)

	w2 := newWorld(t, ledger8472(true))
	w2.post(unclear)
	w2.settle()
	w2.due()
	w2.want("HUMAN_HANDOFF", 5)
}

func TestReplyRejectedTooOftenGoesToAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(false))
	w.verdict = func(*amendsv1.Draft) []*amendsv1.ClaimCheck {
		return []*amendsv1.ClaimCheck{{What: "amount", Found: "₹9", Reason: "unsupported_amount"}}
	}
	w.post(supported())
	w.settle()
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF || len(w.rec.GetReplies()) != 0 || w.rec.GetConsumption().GetRedrafts() != 2 {
		t.Errorf("state %s, %d replies, %d redrafts", casework.StateName(w.rec.GetState()), len(w.rec.GetReplies()), w.rec.GetConsumption().GetRedrafts())
	}
	w.replays()
}

// Late, stale, foreign and repeated results are kept with their reason and
// change nothing (STATE-2, LOSS-1).
func TestResultsThatDoNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	pay := w.mustTask(amendsv1.Slice_SLICE_PAYMENT)
	refusedAs := func(in casework.Input, reason string) {
		t.Helper()
		state := w.rec.GetState()
		w.apply(in)
		h := w.rec.GetHandled()
		if got := h[len(h)-1].GetRefused(); got != reason || w.rec.GetState() != state {
			t.Errorf("refused as %q, want %q; state %s", got, reason, casework.StateName(w.rec.GetState()))
		}
	}
	foreign := w.input("policy-specialist", policyV4(), func(e *amendsv1.Envelope) {
		e.TaskId, e.Attempt, e.BasedOnVersion = pay.Envelope.GetTaskId(), 1, pay.Envelope.GetBasedOnVersion()
	})
	refusedAs(foreign, "author_mismatch")
	forged := w.input("policy-specialist", policyV4(), func(e *amendsv1.Envelope) {
		e.TaskId, e.Attempt, e.BasedOnVersion = pay.Envelope.GetTaskId(), 1, pay.Envelope.GetBasedOnVersion()
	})
	forged.Envelope.Sender = "payment-investigator" // the bus would refuse it; the core does not rely on that
	refusedAs(forged, "field_not_owned")
	stale := w.reply(pay, w.work(pay))
	stale.Envelope.BasedOnVersion = 1
	stale.Envelope.MessageId = "0197f000-0000-7000-8000-000000000001"
	refusedAs(stale, "stale_version")
	pasted := proto.CloneOf(w.ledger)
	pasted.Calls[0].CallId = "call-1-p1"
	other := w.reply(pay, pasted)
	other.Envelope.MessageId = "0197f000-0000-7000-8000-000000000002"
	refusedAs(other, "call_of_another_case")
	tool := proto.CloneOf(w.ledger)
	tool.Calls[0].Tool = "payments.create_refund"
	grabbed := w.reply(pay, tool)
	grabbed.Envelope.MessageId = "0197f000-0000-7000-8000-000000000003"
	refusedAs(grabbed, "tool_not_permitted")

	good := w.reply(pay, w.work(pay))
	good.Envelope.MessageId = "0197f000-0000-7000-8000-000000000004"
	w.apply(good)
	if _, err := casework.Decide(w.rec, good, w.lim); !errors.Is(err, casework.ErrHandled) {
		t.Errorf("the same input again: %v", err)
	}
	repeat := w.reply(pay, w.work(pay))
	repeat.Envelope.MessageId = "0197f000-0000-7000-8000-000000000005"
	refusedAs(repeat, "duplicate_result")
	w.replays()
}

func TestSilentSpecialistIsTriedAgainThenHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	pol := w.mustTask(amendsv1.Slice_SLICE_POLICY)
	w.apply(w.reply(pol, w.work(pol)))
	pay := w.mustTask(amendsv1.Slice_SLICE_PAYMENT)
	w.due()
	if got := w.mustTask(amendsv1.Slice_SLICE_PAYMENT).Envelope; got.GetAttempt() != 2 || got.GetTaskId() != pay.Envelope.GetTaskId() || got.GetMessageId() == pay.Envelope.GetMessageId() {
		t.Errorf("second attempt %v", got)
	}
	w.apply(w.reply(pay, w.work(pay)))
	if h := w.rec.GetHandled(); h[len(h)-1].GetRefused() != "lease_expired" {
		t.Errorf("late result refused as %q", h[len(h)-1].GetRefused())
	}
	w.due()
	w.due()
	if w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF || w.rec.GetCustody().GetReason() != "timed_out" {
		t.Errorf("after three silent attempts: %s, %v", casework.StateName(w.rec.GetState()), w.rec.GetCustody())
	}
	w.settle()
	w.replays()
}

func TestTimersAndCasesThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	if _, err := casework.Decide(nil, w.input("orchestrator", &amendsv1.TimerDue{}, nil), w.lim); !errors.Is(err, casework.ErrNoCase) {
		t.Errorf("timer of no case: %v", err)
	}
	w.post(supported())
	if _, err := casework.Decide(w.rec, w.input("orchestrator", &amendsv1.TimerDue{}, nil), w.lim); !errors.Is(err, casework.ErrNothingDue) {
		t.Errorf("early timer: %v", err)
	}
	again := w.input("gateway", &amendsv1.CaseOpened{Channel: "web", Message: &amendsv1.UntrustedText{Text: "other", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER}, BodySha256: "1" + w.rec.GetBodySha256()[1:], PostedBy: "k"}, nil)
	again.Triage = supported()
	w.apply(again)
	if h := w.rec.GetHandled(); h[len(h)-1].GetRefused() != "idempotency_key_reused" {
		t.Errorf("refused as %q", h[len(h)-1].GetRefused())
	}
}

// Bug B15: only a refund that is on its way or done counts as one.
func TestAcknowledgedStatusB15(t *testing.T) {
	t.Parallel()
	for status, want := range map[amendsv1.RefundStatus]string{
		amendsv1.RefundStatus_REFUND_STATUS_PENDING:         "REFUNDED",
		amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED:       "REFUNDED",
		amendsv1.RefundStatus_REFUND_STATUS_FAILED:          "HUMAN_HANDOFF",
		amendsv1.RefundStatus_REFUND_STATUS_CANCELED:        "HUMAN_HANDOFF",
		amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION: "HUMAN_HANDOFF",
		amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN:         "HUMAN_HANDOFF",
		amendsv1.RefundStatus_REFUND_STATUS_UNSPECIFIED:     "HUMAN_HANDOFF",
	} {
		w := requested(t)
		task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
		e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
		e.Refunds[0].Outcome.ProviderStatus = status
		w.apply(w.reply(task, e))
		w.want(want, 7)
	}
}
