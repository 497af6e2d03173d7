package casework

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/entitlement"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Pinned versions of what a case is opened with.
const (
	PinnedToolSchemas = "tools/1"
	PinnedTopology    = "five-roles/1"
)

// Effects of opening and triage.
var (
	recordMessage = Effect{"record the message", func(s *step) {
		var text *amendsv1.UntrustedText
		var by string
		switch m := s.in.Payload.(type) {
		case *amendsv1.CaseOpened:
			text, by = m.GetMessage(), m.GetPostedBy()
		case *amendsv1.CustomerMessage:
			text, by = m.GetMessage(), m.GetPostedBy()
		default:
			return // a withdrawal by call carries no text
		}
		s.rec.Messages = append(s.rec.Messages, &amendsv1.RecordedMessage{
			MessageId: s.in.messageID(), Text: text, ReceivedAt: s.in.GetBrokerTime(), PostedBy: by,
		})
		s.say("message of %d bytes stored as untrusted text", len(text.GetText()))
	}}
	pinVersions = Effect{"pin versions", func(s *step) {
		s.rec.Pins = &amendsv1.Pins{Rules: entitlement.RuleSet, PolicyCorpus: s.in.GetPolicyCorpus(), ToolSchemas: PinnedToolSchemas, Topology: PinnedTopology}
	}}
	triageInput = Effect{"triage", func(s *step) {
		s.rec.Triage = s.in.GetTriage()
		s.rec.Deadlines.CustomerReply = nil
		s.dropReply("superseded")
		s.raise(EventTriaged)
	}}
	planRefund = Effect{"plan: payment and policy", func(s *step) {
		if s.dispatch(amendsv1.Slice_SLICE_PAYMENT, "pay") && s.dispatch(amendsv1.Slice_SLICE_POLICY, "pol") {
			s.say("triage: %s, order %s is the caller's; tasks pay and pol", s.mainIntent(), s.rec.GetTriage().GetOrderId())
		}
	}}
	planStatus = Effect{"plan without an action: payment", func(s *step) {
		s.dispatch(amendsv1.Slice_SLICE_PAYMENT, "pay")
		s.say("triage: %s, order %s is the caller's; task pay", s.mainIntent(), s.rec.GetTriage().GetOrderId())
	}}
	askCustomer = Effect{"reply: clarify; deadline", func(s *step) {
		s.rec.Consumption.Clarifications++
		s.rec.Deadlines.CustomerReply = s.after(s.lim.ClarifyDeadline)
		s.say("triage: %s", s.rec.GetTriage().GetReason())
		s.startReply(amendsv1.ReplyKind_REPLY_KIND_CLARIFY)
	}}
)

func (s *step) mainIntent() string {
	if in := s.rec.GetTriage().GetIntents(); len(in) > 0 {
		return in[0]
	}
	return "other"
}

// Effects of results and the merge.
var (
	recordResult = Effect{"record the field", func(s *step) {
		s.succeed()
		switch p := s.in.Payload.(type) {
		case *amendsv1.PaymentEvidence:
			s.rec.Payment = p
			s.say("payment evidence: %d captures, %d refunds, complete=%t (%s)", len(p.GetCaptures()), len(p.GetRefunds()), p.GetComplete(), callNames(p.GetCalls()))
		case *amendsv1.PolicyReading:
			s.rec.Policy = p
			s.say("policy: %s (%s)", orDefault(p.GetPassage().GetCitation(), "nothing found"), callNames(p.GetCalls()))
		}
	}}
	mergeWhenPlanned = Effect{"merge when the plan is done", func(s *step) {
		if s.planned() {
			s.raise(EventMerge)
		}
	}}
	decide = Effect{"record the decision", func(s *step) {
		f := s.finding
		d := &amendsv1.Decision{
			Refund: f.Kind == entitlement.Refund, Reason: f.Reason, EvidenceComplete: f.Kind != entitlement.Hold,
			NeedsApproval: f.Approvers > 0, ApproversNeeded: uint32(f.Approvers),
			CallIds: f.CallIDs, PolicyCitation: f.Citation, Facts: f.Facts, Rules: entitlement.RuleSet,
		}
		for _, r := range f.Refunds {
			d.Refunds = append(d.Refunds, actionRefund(s.rec.GetCaseId(), r))
		}
		s.rec.Decision = d
		s.rec.Conflicts = mergeConflicts(s.rec.GetConflicts(), f.Conflicts)
		s.say("decision: refund=%t, reason %s, evidence.complete=%t", d.GetRefund(), d.GetReason(), d.GetEvidenceComplete())
	}}
	scheduleRecheck = Effect{"recheck timer", func(s *step) {
		s.rec.Deadlines.Recheck = s.after(s.lim.RecheckEvery)
		s.rec.Decision.RecheckAt = s.rec.Deadlines.Recheck
		s.say("%s; looked at again at %s (%s)", s.note, s.rec.GetDeadlines().GetRecheck().AsTime().UTC().Format(time.RFC3339), strings.Join(s.rec.GetDecision().GetCallIds(), " "))
	}}
	lookAgain = Effect{"look the evidence up again", func(s *step) {
		if s.rec.GetState() == investigating && s.rec.GetDeadlines().GetRecheck() != nil {
			s.rec.Consumption.Rechecks++
		}
		s.rec.Deadlines.Recheck = nil
		s.dropReply("superseded")
		s.dispatch(amendsv1.Slice_SLICE_PAYMENT, "pay")
		if !s.statusOnly() && !s.hasPolicy() {
			s.dispatch(amendsv1.Slice_SLICE_POLICY, "pol") // what was not found may be there by now
		}
		s.say("evidence is looked up again")
	}}
)

// hasPolicy reports whether the policy need not be looked up again.
func (s *step) hasPolicy() bool {
	p := s.rec.GetPolicy()
	return s.node(TaskID(s.rec.GetCaseId(), "pol")).GetStatus() == amendsv1.TaskStatus_TASK_STATUS_SUCCEEDED &&
		p.GetOutcome() == amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED && p.GetRule() != nil && p.GetCorpusVersion() == s.rec.GetPins().GetPolicyCorpus()
}

// assess runs the rules over the record; only a merge reads the finding.
func (s *step) assess() {
	t := s.rec.GetTriage()
	s.finding = entitlement.Assess(entitlement.Question{
		OrderID: t.GetOrderId(), Payment: s.rec.GetPayment(), Policy: s.rec.GetPolicy(), PinnedCorpus: s.rec.GetPins().GetPolicyCorpus(),
		ReceivedAt: s.rec.GetOpenedAt().AsTime(), StatusOnly: s.statusOnly(),
		ClaimsRefund: t.GetClaimsRefund(),
	})
	for _, d := range s.finding.Refunds {
		if withdrawnKey(s.rec, approval.Key(s.rec.GetCaseId(), d.PaymentID)) {
			s.finding = entitlement.Finding{Kind: entitlement.Person, Reason: reasonWithdrawn, CallIDs: s.finding.CallIDs, Facts: established(s.finding.Facts)}
			break
		}
	}
	if s.finding.Kind == entitlement.Refund {
		if _, sum := s.propose(); sum == "" {
			s.finding = entitlement.Finding{Kind: entitlement.Person, Reason: "action_not_canonical", CallIDs: s.finding.CallIDs}
		}
	}
}

// Effects of attempts.
var (
	retry = Effect{"new attempt of the same task", func(s *step) {
		s.failAttempt()
		name := taskName(s.rec.GetCaseId(), s.task.GetTaskId())
		s.dispatch(s.task.GetSlice(), name)
		s.say("%s: attempt %d %s, attempt %d", s.task.GetTaskId(), s.attempt.GetNumber(), s.failure, len(s.task.GetAttempts()))
	}}
	giveUp = Effect{"the task failed", func(s *step) {
		s.failAttempt()
		s.task.Status, s.task.Reason = amendsv1.TaskStatus_TASK_STATUS_FAILED, clip(s.failure, 64)
	}}
	dropFurther      = Effect{"drop what would follow", func(s *step) { s.next = nil }}
	noteContinuation = Effect{"the message goes to a linked case", func(s *step) {
		s.rec.ContinuedByCaseId = s.in.GetOpensCaseId()
		s.say("the customer wrote again: %s", s.rec.GetContinuedByCaseId())
	}}
	noteRefusal = Effect{"record the refusal", func(s *step) {
		s.say("refused: %s", s.refusal)
		if d, ok := s.in.Payload.(*amendsv1.SignedDecision); ok {
			s.say("refused: %s (a decision in the name of %s)", s.refusal, d.GetApproverId())
		}
	}}
)

// Effects of withdrawal.
var (
	raiseCancel = Effect{"raise the cancel revision", func(s *step) { s.rec.CancelRevision++ }}
	withdraw    = Effect{"tasks cancelled; reply: nothing was refunded", func(s *step) {
		s.cancelTasks("cancelled")
		s.rec.Deadlines, s.rec.HeldSince = &amendsv1.Deadlines{}, nil
		s.toDesk("withdrawn")
		s.say("withdrawn before anything was refunded")
		s.startReply(amendsv1.ReplyKind_REPLY_KIND_CANCELLED)
	}}
)

func callNames(calls []*amendsv1.ToolCall) string {
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.GetCallId()
	}
	return strings.Join(names, " ")
}

// mergeConflicts keeps each conflict once, whichever look-up found it again.
func mergeConflicts(have, found []*amendsv1.Conflict) []*amendsv1.Conflict {
	for _, f := range found {
		if !slices.ContainsFunc(have, func(h *amendsv1.Conflict) bool { return proto.Equal(h, f) }) {
			have = append(have, f)
		}
	}
	return have
}

func taskName(caseID, taskID string) string { return strings.TrimPrefix(taskID, TaskID(caseID, "")) }
