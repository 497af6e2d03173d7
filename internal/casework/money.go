package casework

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/entitlement"
	"github.com/amends-dev/amends/internal/evidence"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// asked counts the attempts of a task that were not held.
func asked(n *amendsv1.TaskNode) int {
	count := 0
	for _, a := range n.GetAttempts() {
		if a.GetReason() != reasonHeld {
			count++
		}
	}
	return count
}

func actionRefund(caseID string, d entitlement.Due) *amendsv1.ActionRefund {
	return &amendsv1.ActionRefund{PaymentId: d.PaymentID, Amount: d.Amount, Kind: entitlement.KindDuplicate, IdempotencyKey: approval.Key(caseID, d.PaymentID)}
}

// propose makes the action record that follows from the finding. The hash is
// empty when the provider's ids do not make a record that people could sign;
// assess looks at that first and leaves such a case to a person.
func (s *step) propose() (*amendsv1.ActionRecord, string) {
	var refunds []*amendsv1.ActionRefund
	for _, d := range s.finding.Refunds {
		refunds = append(refunds, actionRefund(s.rec.GetCaseId(), d))
	}
	return s.action(refunds, "")
}

// action makes the record of an action; by is the custodian who proposes it.
func (s *step) action(refunds []*amendsv1.ActionRefund, by string) (*amendsv1.ActionRecord, string) {
	a := &amendsv1.ActionRecord{
		Tenant: s.rec.GetTenant(), CaseId: s.rec.GetCaseId(), OrderId: s.rec.GetTriage().GetOrderId(),
		CaseVersion: s.rec.GetVersion(), Proposal: max(s.rec.GetConsumption().GetProposals(), 1),
		EvidenceSha256: evidence.SHA256(s.rec.GetPayment(), s.rec.GetPolicy()),
		Created:        s.in.GetBrokerTime(), Expires: s.after(s.lim.ApprovalExpiry),
		Refunds: slices.Clone(refunds), ProposedBy: by,
	}
	slices.SortFunc(a.Refunds, func(x, y *amendsv1.ActionRefund) int { return strings.Compare(x.GetPaymentId(), y.GetPaymentId()) })
	sum, err := approval.ActionSHA256(a)
	if err != nil {
		return nil, ""
	}
	return a, sum
}

// Effects of the action and its approval.
var (
	proposeAction = Effect{"action record", func(s *step) {
		s.rec.Consumption.Proposals++
		s.setAction(s.propose())
	}}
	awaitApprover = Effect{"expiry timer", func(s *step) {
		s.rec.Deadlines.Approval = s.rec.GetAction().GetExpires()
		s.say("%s; approval asked for until %s", s.note, s.rec.GetAction().GetExpires().AsTime().UTC().Format(time.RFC3339))
	}}
	recordApproval = Effect{"record the approval", func(s *step) {
		d, _ := s.in.Payload.(*amendsv1.SignedDecision) // the event is raised for no other payload
		s.rec.Approvals = append(s.rec.Approvals, d)
		s.say("approved by %s as %s: exactly action %.12s", d.GetApproverId(), d.GetApprovalId(), d.GetActionSha256())
	}}
	recordDenial = Effect{"record the denial", func(s *step) {
		d, _ := s.in.Payload.(*amendsv1.SignedDecision) // the event is raised for no other payload
		s.rec.Approvals = append(s.rec.Approvals, d)
		s.rec.Deadlines.Approval = nil
		s.say("denied by %s as %s", d.GetApproverId(), d.GetApprovalId())
	}}
	proposalBack = Effect{"the proposal does not count", func(s *step) { s.rec.Consumption.Proposals-- }}
	voidAction   = Effect{"action void", func(s *step) {
		s.setAction(nil, "")
		s.rec.Deadlines.Approval = nil
	}}
)

// Effects of execution.
var (
	execute = Effect{"execute task", func(s *step) {
		s.rec.Deadlines.Approval = nil
		s.dispatch(amendsv1.Slice_SLICE_EXECUTE, "execute-"+strconv.Itoa(int(s.rec.GetAction().GetProposal())))
	}}
	executeAgain = Effect{"execute task again, same key", func(s *step) {
		s.rec.Deadlines.Effect = nil
		n := s.task
		if a := running(n); a != nil {
			a.Status, a.Reason = amendsv1.AttemptStatus_ATTEMPT_STATUS_TIMED_OUT, reasonTimedOut
		}
		s.dispatch(n.GetSlice(), taskName(s.rec.GetCaseId(), n.GetTaskId()))
		s.say("no outcome known; the executor is asked again with the same key")
	}}
	askToCancel = Effect{"cancel task", func(s *step) {
		s.dispatchCancel()
		s.say("withdrawn while a refund may be under way: the executor's answer decides")
	}}
	outcomeUnknown = Effect{"outcome=unknown", func(s *step) {
		// An answer that says so, to whatever was asked; else an attempt that
		// nobody knows the end of.
		_, answered := s.in.Payload.(*amendsv1.EffectResult)
		if answered || s.task.GetSlice() == amendsv1.Slice_SLICE_EXECUTE && s.attempt != nil {
			s.rec.OutcomeUnknown = true
		}
		if s.attempt != nil && s.attempt.GetStatus() == amendsv1.AttemptStatus_ATTEMPT_STATUS_DISPATCHED {
			s.failure = orDefault(s.failure, "outcome_unknown")
			s.failAttempt()
		}
		if s.rec.GetDeadlines().GetEffect() == nil {
			s.rec.Deadlines.Effect = s.after(s.effectWait(asked(s.effectTask())))
		}
	}}
	askAgainLater = Effect{"ask again, same key; withdraw instead when that was asked for", func(s *step) {
		s.endAttempt()
		s.rec.OutcomeUnknown = slices.ContainsFunc(s.rec.GetEffect().GetRefunds(), unknownYet)
		if s.rec.GetCancelRevision() > 0 {
			s.dispatchCancel()
			return
		}
		s.rec.Deadlines.Effect = s.after(s.effectWait(asked(s.executeTask())))
	}}
	waitForResume = Effect{"wait for the stop to be lifted", func(s *step) {
		if s.rec.GetHeldSince() == nil {
			s.rec.HeldSince = s.in.GetBrokerTime()
		}
		s.rec.Deadlines.Effect = s.after(heldWait(s.at.Sub(s.rec.GetHeldSince().AsTime())))
		s.endAttempt()
		s.attempt.Reason = reasonHeld
		s.say("the emergency stop is set; the case keeps its place")
	}}
	reconcileLater = Effect{"person's queue; ask again later, same key", func(s *step) {
		s.rec.Deadlines.Effect = s.after(s.lim.EffectDeadlineMax)
		if _, answered := s.in.Payload.(*amendsv1.EffectResult); answered {
			s.rec.OutcomeUnknown = true // it has begun, or nothing would be in doubt
		}
		s.endAttempt()
		s.transfer(QueueReconciliation, "", "outcome_undecidable")
	}}
	recordEffect = Effect{"record the effect", func(s *step) {
		e, _ := s.in.Payload.(*amendsv1.EffectResult) // the event is raised for no other payload
		s.setEffect(e)
		if e.GetClass() != amendsv1.EffectClass_EFFECT_CLASS_HELD {
			s.rec.HeldSince = nil
		}
		s.say("executor: %s%s", effectWord(e.GetClass()), refundNames(e))
		if e.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED {
			s.rec.OutcomeUnknown = false
			s.rec.Deadlines.Effect = nil
			s.succeed()
			s.cancelTasks("effect_settled", amendsv1.Slice_SLICE_EXECUTE, amendsv1.Slice_SLICE_CANCEL, amendsv1.Slice_SLICE_SETTLE)
		}
		switch e.GetClass() {
		case amendsv1.EffectClass_EFFECT_CLASS_REFUSED: // final
			s.rec.OutcomeUnknown = false
			s.endAttempt()
		case amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN: // and never will be
			s.rec.OutcomeUnknown = false
		case amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT:
			if s.task.GetSlice() == amendsv1.Slice_SLICE_SETTLE { // nobody asks again by itself
				s.rec.OutcomeUnknown = false
			}
		default: // an acknowledgement is above, the others leave it open
		}
		// Whatever the whole answer says, a refund of it that nobody knows is one.
		s.rec.OutcomeUnknown = s.rec.GetOutcomeUnknown() || slices.ContainsFunc(s.rec.GetEffect().GetRefunds(), unknownYet)
		if sl := s.task.GetSlice(); sl == amendsv1.Slice_SLICE_CANCEL || sl == amendsv1.Slice_SLICE_SETTLE {
			s.succeed() // it asked what became of the action, and has its answer
		}
	}}
	tellRefund = Effect{"reply: refunded", func(s *step) {
		s.toDesk("effect_settled")
		s.startReply(amendsv1.ReplyKind_REPLY_KIND_REFUNDED)
	}}
)

// What the provider says of refunds while an effect is under way.
var (
	saysRefundFailed = Guard{"a refund failed", func(s *step) bool {
		e, ok := s.in.Payload.(*amendsv1.ProviderEvent)
		return ok && e.GetKind() == refundFailed && len(s.rec.GetFailedRefunds()) < maxFailedRefunds
	}}
	noteFailedRefund = Effect{"remember which, for the acknowledgement", func(s *step) {
		e, _ := s.in.Payload.(*amendsv1.ProviderEvent) // the guard saw it
		s.rec.FailedRefunds = addOnce(s.rec.GetFailedRefunds(), e.GetObjectId())
		s.say("the provider says that refund %s failed", e.GetObjectId())
	}}
)

// maxFailedRefunds is what a record can hold.
const maxFailedRefunds = 64

// dispatchCancel asks the executor to withdraw the action, unless it is being
// asked already.
func (s *step) dispatchCancel() {
	for _, n := range s.rec.GetTasks() {
		if n.GetSlice() == amendsv1.Slice_SLICE_CANCEL && running(n) != nil {
			return
		}
	}
	s.rec.Deadlines.Effect = nil
	s.dispatch(amendsv1.Slice_SLICE_CANCEL, "cancel")
}

func (s *step) endAttempt() {
	if s.attempt != nil && s.attempt.GetStatus() == amendsv1.AttemptStatus_ATTEMPT_STATUS_DISPATCHED {
		s.attempt.Status = amendsv1.AttemptStatus_ATTEMPT_STATUS_FAILED
		if e, ok := s.in.Payload.(*amendsv1.EffectResult); ok {
			s.attempt.Reason = clip(orDefault(e.GetReason(), strings.ToLower(effectWord(e.GetClass()))), 64)
		}
	}
}

func effectWord(c amendsv1.EffectClass) string {
	return strings.TrimPrefix(c.String(), "EFFECT_CLASS_")
}

func refundNames(e *amendsv1.EffectResult) string {
	var b strings.Builder
	for _, r := range e.GetRefunds() {
		if id := r.GetOutcome().GetRefundId(); id != "" {
			b.WriteString(", " + id + " " + statusWord(readStatus(r)) + " on " + r.GetPaymentId())
		}
	}
	return b.String()
}

func statusWord(st amendsv1.RefundStatus) string {
	return strings.ToLower(strings.TrimPrefix(st.String(), "REFUND_STATUS_"))
}
