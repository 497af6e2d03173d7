package casework

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func isResult(p proto.Message) bool {
	if _, ok := author(p); ok {
		return true
	}
	_, ok := p.(*amendsv1.TaskError)
	return ok
}

// accept checks a returned result against its task: who, which attempt, lease,
// observed version, cancel revision, tools, budget, provenance. The result is
// untrusted until it passes. It gives the reason of the first failed answer,
// or nothing, and leaves the answers apart in the attempt's acceptance record.
//
// An effect is a fact about money: it counts from whichever attempt it comes
// and however late.
func (s *step) accept() string {
	env := s.in.GetEnvelope()
	s.task = s.node(env.GetTaskId())
	if s.task == nil {
		return "task_unknown"
	}
	for _, a := range s.task.GetAttempts() {
		if a.GetNumber() == env.GetAttempt() {
			s.attempt = a
		}
	}
	if _, ok := s.in.Payload.(*amendsv1.EffectResult); ok && s.attempt == nil && effectful(s.task.GetSlice()) && env.GetAttempt() > 0 && env.GetAttempt() <= maxAttempts {
		// Of those that the record does not hold any more, see makeRoom.
		s.attempt = &amendsv1.Attempt{Number: env.GetAttempt(), Status: amendsv1.AttemptStatus_ATTEMPT_STATUS_FAILED}
	}
	if s.attempt == nil {
		return "attempt_unknown"
	}
	acc := &amendsv1.Acceptance{Arrived: true}
	acc.Reason = s.judge(acc)
	acc.Eligible = acc.Reason == ""
	s.spend(acc.Eligible)
	if s.attempt.GetAcceptance() == nil {
		s.attempt.Acceptance = acc
	}
	if e, ok := s.in.Payload.(*amendsv1.TaskError); ok && acc.Eligible && e.GetMessageId() != "" && e.GetMessageId() != s.attempt.GetMessageId() {
		return "attempt_superseded"
	}
	if e, ok := s.in.Payload.(*amendsv1.TaskError); ok && acc.Eligible {
		s.failure, s.retryable = e.GetReason(), e.GetRetryable()
	}
	return acc.GetReason()
}

func (s *step) judge(acc *amendsv1.Acceptance) string {
	env := s.in.GetEnvelope()
	if s.task.GetTarget() != s.in.sender() {
		return "author_mismatch"
	}
	if who, ok := author(s.in.Payload); ok && (string(who) != s.in.sender() || !fits(s.in.Payload, s.task.GetSlice())) {
		return "field_not_owned"
	}
	effect := effectful(s.task.GetSlice())
	if open := running(s.task) == s.attempt; !effect && !open {
		switch s.attempt.GetStatus() {
		case amendsv1.AttemptStatus_ATTEMPT_STATUS_CANCELLED:
			return "late_after_cancel"
		case amendsv1.AttemptStatus_ATTEMPT_STATUS_TIMED_OUT:
			return "lease_expired"
		case amendsv1.AttemptStatus_ATTEMPT_STATUS_ACCEPTED:
			return "duplicate_result"
		default:
			return "attempt_closed"
		}
	}
	news := effect && s.lateNews()
	if effect && s.task.GetStatus() == amendsv1.TaskStatus_TASK_STATUS_SUCCEEDED && !news {
		return "duplicate_result"
	}
	if acc.LeaseFresh = effect || s.at.Before(s.attempt.GetDeadline().AsTime()); !acc.LeaseFresh {
		return "lease_expired"
	}
	if acc.TaskCurrent = effect || env.GetBasedOnVersion() == s.task.GetInputVersion(); !acc.TaskCurrent {
		return "stale_version"
	}
	if reason := s.context(); reason != "" {
		return reason
	}
	acc.ContextPresent = true
	if reason := s.provenance(); reason != "" {
		return reason
	}
	acc.EvidenceValid = true
	confirms := s.task.GetSlice() == amendsv1.Slice_SLICE_CONFIRM
	if acc.NextActionAuthorised = confirms || news || !Closed(s.rec); !acc.NextActionAuthorised {
		return "case_closed"
	}
	return ""
}

// context checks that a derived result was made from what the record holds now.
func (s *step) context() string {
	switch p := s.in.Payload.(type) {
	case *amendsv1.PaymentEvidence:
		if id := p.GetOrder().GetOrderId(); id != "" && id != s.rec.GetTriage().GetOrderId() {
			return "order_mismatch"
		}
	case *amendsv1.Draft:
		if p.GetFactsSha256() != s.rec.GetReply().GetFactsSha256() || p.GetKind() != s.rec.GetReply().GetKind() {
			return "stale_facts"
		}
	case *amendsv1.Verification:
		if p.GetDraftSha256() != evidence.TextSHA256(s.rec.GetDraft().GetText()) {
			return "stale_draft"
		}
	case *amendsv1.EffectResult:
		of := s.rec.GetActionSha256()
		if s.task.GetSlice() == amendsv1.Slice_SLICE_CONFIRM {
			of = doubted(s.rec).GetEffect().GetActionSha256()
		}
		if p.GetActionSha256() != of && !s.lateNews() {
			return "action_mismatch"
		}
	}
	return ""
}

// provenance checks tools, budgets and call ids of a result: every fact needs
// a call of this case, made with a tool the task permits. A reference in a
// customer's message is never one (M06).
func (s *step) provenance() string {
	usage, calls := accountOf(s.in.Payload)
	if int(usage.GetActions()) > s.lim.TaskActions || int(usage.GetModelTokens()) > s.lim.TaskTokens {
		return "over_budget"
	}
	permitted := permittedTools(s.task.GetSlice())
	prefix := "call-" + ident.Suffix(s.rec.GetCaseId()) + "-"
	for _, c := range calls {
		switch {
		case !slices.Contains(permitted, c.GetTool()):
			return "tool_not_permitted"
		case !strings.HasPrefix(c.GetCallId(), prefix):
			return "call_of_another_case"
		}
	}
	return ""
}

// accountOf gives what a result says it used and the calls it rests on.
func accountOf(p proto.Message) (*amendsv1.Usage, []*amendsv1.ToolCall) {
	switch m := p.(type) {
	case *amendsv1.PaymentEvidence:
		return m.GetUsage(), m.GetCalls()
	case *amendsv1.PolicyReading:
		return m.GetUsage(), m.GetCalls()
	case *amendsv1.Draft:
		return m.GetUsage(), nil
	case *amendsv1.Verification:
		return m.GetUsage(), m.GetCalls()
	case *amendsv1.TaskError:
		return m.GetUsage(), m.GetCalls()
	}
	return nil, nil
}

// spend books what a result consumed; refused work counts too, and apart
// (BUDGET-1).
func (s *step) spend(eligible bool) {
	usage, _ := accountOf(s.in.Payload)
	c := s.rec.GetConsumption()
	c.Actions += usage.GetActions()
	c.ModelTokens += usage.GetModelTokens()
	c.CostMicros += usage.GetCostMicros()
	if !eligible {
		c.WastedModelTokens += usage.GetModelTokens()
	}
	if int(c.GetModelTokens()) > s.lim.ModelTokens && eligible && s.rec.GetState() == amendsv1.CaseState_CASE_STATE_INVESTIGATING {
		s.failure = "model_tokens_spent"
		s.raise(EventBudgetSpent)
	}
}

func fits(p proto.Message, slice amendsv1.Slice) bool {
	switch p.(type) {
	case *amendsv1.PaymentEvidence:
		return slice == amendsv1.Slice_SLICE_PAYMENT
	case *amendsv1.PolicyReading:
		return slice == amendsv1.Slice_SLICE_POLICY
	case *amendsv1.Draft:
		return slice == amendsv1.Slice_SLICE_COMPOSE
	case *amendsv1.Verification:
		return slice == amendsv1.Slice_SLICE_VERIFY
	case *amendsv1.EffectResult:
		return byExecutor(slice)
	}
	return false
}
