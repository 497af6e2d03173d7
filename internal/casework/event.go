package casework

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Event names what happened to a case. Inputs become events; the desk gives
// itself further ones in the same commit (triaged, merge).
type Event string

// The events of the table.
const (
	EventOpened          Event = "case.opened"
	EventTriaged         Event = "triaged"
	EventMessage         Event = "customer.message"
	EventFactChanged     Event = "customer.message.changes_fact"
	EventContinued       Event = "customer.message.after_close"
	EventCancel          Event = "cancel"
	EventProvider        Event = "provider.event"
	EventResult          Event = "result"
	EventMerge           Event = "merge"
	EventAttemptFailed   Event = "attempt.failed"
	EventApproval        Event = "approval"
	EventDenial          Event = "denial"
	EventApprovalExpired Event = "approval.expired"
	EventAcknowledged    Event = "effect.acknowledged"
	EventEffectRefused   Event = "effect.refused"
	EventNoEffect        Event = "effect.none"
	EventEffectUnknown   Event = "effect.unknown"
	EventEffectHeld      Event = "effect.held"
	EventUndecidable     Event = "effect.undecidable"
	EventNotBegun        Event = "effect.not_begun"
	EventAfterAll        Event = "effect.after_all"
	EventEffectOverdue   Event = "effect.overdue"
	EventStopLifted      Event = "stop.lifted"
	EventDraft           Event = "draft.returned"
	EventReplyVerified   Event = "reply.verified"
	EventReplyRejected   Event = "reply.rejected"
	EventRecheckDue      Event = "recheck.due"
	EventCustomerOverdue Event = "customer.overdue"
	EventRefundNews      Event = "provider.event.own_refund"
	EventConfirmed       Event = "confirm.answered"
	EventRefundFailed    Event = "confirm.refund_failed"
	EventUnconfirmed     Event = "confirm.failed"
	EventUnsettled       Event = "executor.not_known_yet"
	EventSettleFailed    Event = "settle.failed"
	EventFinding         Event = "finding"
	EventFailureFound    Event = "finding.own_refund_failed"
	EventBudgetSpent     Event = "budget.spent"
	EventCustodyTaken    Event = "custody.taken"
	EventCustodyReleased Event = "custody.released"
	EventProposed        Event = "custody.proposes"
	EventDeclined        Event = "custody.declines"
	EventAsked           Event = "custody.asks"
	EventInvestigate     Event = "custody.investigates"
	EventReconcile       Event = "custody.reconciles"
	EventWritten         Event = "custody.closes"
	EventSettles         Event = "custody.settles"
	EventResolved        Event = "custody.resolves"
	EventRefused         Event = "input.refused"
)

// Input is one message for a case, as the decision function sees it.
type Input struct {
	*amendsv1.AppliedInput
	// Payload is the envelope's payload, decoded and checked.
	Payload proto.Message
}

func (in Input) sender() string    { return in.GetEnvelope().GetSender() }
func (in Input) messageID() string { return in.GetEnvelope().GetMessageId() }

// NeedsApprover reports whether the shell must check the input's signature
// against the approver registry before it decides.
func NeedsApprover(p proto.Message) (*amendsv1.SignedDecision, bool) {
	d, ok := p.(*amendsv1.SignedDecision)
	return d, ok
}

// NeedsCustodian reports whether the shell must check the input's signature as
// a custodian's before it decides.
func NeedsCustodian(p proto.Message) (*amendsv1.CustodyDecision, bool) {
	d, ok := p.(*amendsv1.CustodyDecision)
	return d, ok
}

// refundFailed is the kind of a provider event that a refund failed later.
const refundFailed = "refund.failed"

// event says what an input means for the record, or refuses it with a reason.
// Results have passed the acceptance check before.
func (s *step) event() (Event, string) {
	switch m := s.in.Payload.(type) {
	case *amendsv1.CaseOpened:
		if s.rec.GetVersion() > 0 {
			if m.GetBodySha256() != s.rec.GetBodySha256() {
				return EventRefused, "idempotency_key_reused"
			}
			return EventRefused, "duplicate_post"
		}
		return EventOpened, ""
	case *amendsv1.CustomerMessage:
		return s.messageEvent(m)
	case *amendsv1.CaseCancel:
		return EventCancel, ""
	case *amendsv1.ProviderEvent:
		if s.newsOf(m) {
			return EventRefundNews, ""
		}
		return EventProvider, ""
	case *amendsv1.EffectFinding, *amendsv1.CaseFinding:
		if len(s.rec.GetFindings()) >= maxFindings {
			return EventRefused, "findings_full"
		}
		if s.ownFailure(findingOf(m)) {
			return EventFailureFound, ""
		}
		return EventFinding, ""
	case *amendsv1.SignedDecision:
		return s.decisionEvent(m)
	case *amendsv1.CustodyDecision:
		return s.custodyEvent(m)
	case *amendsv1.TimerDue:
		return s.dueEvent()
	case *amendsv1.PaymentEvidence, *amendsv1.PolicyReading:
		return EventResult, ""
	case *amendsv1.Draft:
		return EventDraft, ""
	case *amendsv1.Verification:
		if m.GetVerdict() == amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED && allSupported(m) {
			return EventReplyVerified, ""
		}
		return EventReplyRejected, ""
	case *amendsv1.EffectResult:
		switch {
		case s.task.GetSlice() == amendsv1.Slice_SLICE_CONFIRM:
			return s.confirmEvent(m), ""
		case s.afterAll(m):
			return EventAfterAll, ""
		case s.task.GetSlice() == amendsv1.Slice_SLICE_SETTLE:
			return s.settleEvent(m), ""
		default:
			return effectEvent(m)
		}
	case *amendsv1.TaskError:
		switch {
		case s.task.GetSlice() != amendsv1.Slice_SLICE_CONFIRM:
			return EventAttemptFailed, ""
		case s.retryable:
			return EventUnsettled, ""
		}
		return EventUnconfirmed, ""
	}
	return EventRefused, "type_unexpected"
}

// messageBytes gives the size of the customer's texts with one more.
func (s *step) messageBytes(more *amendsv1.CustomerMessage) int {
	n := len(more.GetMessage().GetText())
	for _, m := range s.rec.GetMessages() {
		n += len(m.GetText().GetText())
	}
	return n
}

// cancellable reports whether the table has a cancel for the state; where it
// has none, a text that withdraws is still a message people must see.
func (s *step) cancellable() bool {
	_, ok := find(s, EventCancel)
	return ok
}

// foreign refuses what comes from outside and is not about this case: another
// customer's words, another order's event.
func (s *step) foreign() string {
	switch m := s.in.Payload.(type) {
	case *amendsv1.CustomerMessage, *amendsv1.CaseCancel:
		if s.in.GetEnvelope().GetCustomerId() != s.rec.GetCustomerId() {
			return "customer_mismatch"
		}
	case *amendsv1.ProviderEvent:
		if made := madeBy(s.rec, m.GetObjectId()); m.GetOrderId() != s.rec.GetTriage().GetOrderId() && m.GetOrderId() != made.GetAction().GetOrderId() {
			return "order_mismatch"
		}
	case *amendsv1.EffectFinding, *amendsv1.CaseFinding:
		switch {
		case findingOf(m).GetTenant() != s.rec.GetTenant():
			return "tenant_mismatch"
		case s.in.sender() != string(finder(m)):
			return "author_mismatch"
		}
	}
	return ""
}

// fromOutside reports whether an input is a customer's or the provider's.
func fromOutside(in Input) bool {
	switch in.Payload.(type) {
	case *amendsv1.CaseOpened, *amendsv1.CustomerMessage, *amendsv1.CaseCancel, *amendsv1.ProviderEvent:
		return true
	}
	return false
}

func (s *step) messageEvent(m *amendsv1.CustomerMessage) (Event, string) {
	switch elsewhere := s.in.GetOpensCaseId(); {
	case s.rec.GetVersion() == 0:
		return EventOpened, "" // the first of a case that continues another
	case Closed(s.rec) && (elsewhere == "" || elsewhere == s.rec.GetCaseId()):
		return EventRefused, "linked_cases_spent"
	case Closed(s.rec):
		return EventContinued, ""
	}
	if len(s.rec.GetMessages()) >= s.lim.Messages || s.messageBytes(m) > s.lim.MessageBytes {
		return EventRefused, "message_limit"
	}
	t := s.in.GetTriage()
	switch {
	case t.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_CANCEL && s.cancellable():
		return EventCancel, ""
	case t.GetOrderId() != "" && s.rec.GetTriage().GetOrderId() != "" && t.GetOrderId() != s.rec.GetTriage().GetOrderId():
		return EventFactChanged, ""
	}
	return EventMessage, ""
}

func (s *step) decisionEvent(d *amendsv1.SignedDecision) (Event, string) {
	check := s.in.GetApprover()
	switch {
	case s.rec.GetState() != amendsv1.CaseState_CASE_STATE_AWAITING_APPROVAL:
		return EventRefused, "not_awaiting_approval"
	case !check.GetValid():
		return EventRefused, orDefault(check.GetReason(), "approver_unchecked")
	case d.GetActionSha256() != s.rec.GetActionSha256():
		return EventRefused, "record_changed"
	case !s.at.Before(s.rec.GetAction().GetExpires().AsTime()):
		return EventRefused, "approval_expired"
	case d.GetVerdict() == amendsv1.Verdict_VERDICT_DENY:
		return EventDenial, ""
	}
	for _, have := range s.rec.GetApprovals() {
		if have.GetActionSha256() != d.GetActionSha256() {
			continue
		}
		if have.GetApproverId() == d.GetApproverId() {
			return EventRefused, "approver_already_counted"
		}
	}
	for _, have := range s.rec.GetApprovals() {
		if have.GetApprovalId() == d.GetApprovalId() {
			return EventRefused, "approval_id_reused"
		}
	}
	return EventApproval, ""
}

// allSupported reports whether every check of a verification holds: a verdict
// that its own checks contradict verifies nothing.
func allSupported(v *amendsv1.Verification) bool {
	for _, c := range v.GetChecks() {
		if !c.GetSupported() {
			return false
		}
	}
	return true
}

func effectEvent(m *amendsv1.EffectResult) (Event, string) {
	switch m.GetClass() {
	case amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED:
		return EventAcknowledged, ""
	case amendsv1.EffectClass_EFFECT_CLASS_REFUSED:
		return EventEffectRefused, ""
	case amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT:
		return EventNoEffect, ""
	case amendsv1.EffectClass_EFFECT_CLASS_HELD:
		return EventEffectHeld, ""
	case amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN:
		return EventNotBegun, ""
	case amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE:
		return EventUndecidable, ""
	case amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP:
		return EventEffectUnknown, ""
	default:
		return EventRefused, fmt.Sprintf("effect_class_%d", m.GetClass())
	}
}

// author names the one service that may send each result type; a result that
// touches another's field is rejected, whoever sent it (STATE-2).
func author(p proto.Message) (roles.Service, bool) {
	switch p.(type) {
	case *amendsv1.PaymentEvidence:
		return roles.PaymentInvestigator, true
	case *amendsv1.PolicyReading:
		return roles.PolicySpecialist, true
	case *amendsv1.Draft:
		return roles.Composer, true
	case *amendsv1.Verification:
		return roles.Verifier, true
	case *amendsv1.EffectResult:
		return roles.RefundExecutor, true
	}
	return "", false
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}
