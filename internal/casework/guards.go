package casework

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/entitlement"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func triagedAs(name string, want amendsv1.TriageOutcome) Guard {
	return Guard{name, func(s *step) bool { return s.rec.GetTriage().GetOutcome() == want }}
}

func finds(name string, want entitlement.Kind) Guard {
	return Guard{name, func(s *step) bool { return s.finding.Kind == want }}
}

// Guards of triage.
var (
	isSupported  = triagedAs("supported, confident, order known and the caller's", amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED)
	isStatusOnly = triagedAs("status question only", amendsv1.TriageOutcome_TRIAGE_OUTCOME_STATUS_ONLY)
	isUnclear    = triagedAs("a question would settle it", amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY)
	// A message that takes back what a closed case did is for people: that
	// nothing was refunded may not be true.
	isCancel = Guard{"withdrawn, and no closed case continued", func(s *step) bool {
		return s.rec.GetTriage().GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_CANCEL && s.rec.GetContinuesCaseId() == ""
	}}

	clarificationsLeft = Guard{"clarifications left", func(s *step) bool {
		return int(s.rec.GetConsumption().GetClarifications()) < s.lim.Clarifications
	}}
)

// nothingMoved: no refund of this case exists or may exist, so that a withdrawal
// may say so (TRUTH-1).
var nothingMoved = Guard{"nothing was refunded", func(s *step) bool { return !s.moved() }}

// neverRefunded: no action of this case made a refund; the current one has not
// begun, says the executor.
var neverRefunded = Guard{"no refund was made", func(s *step) bool { return !s.refunded() && !beganUnnoticed(s) }}

func (s *step) moved() bool { return s.rec.GetOutcomeUnknown() || s.refunded() }

// Guards of the merge.
var (
	findsRefund     = finds("complete, no conflict, eligible", entitlement.Refund)
	findsHold       = finds("evidence incomplete or contradictory", entitlement.Hold)
	findsNothingDue = finds("complete, nothing due", entitlement.NothingDue)
	findsPerson     = finds("equal authority, dispute, partial refund, policy", entitlement.Person)

	belowThreshold = Guard{"below threshold", func(s *step) bool { return s.finding.Approvers == 0 }}
	proposalsLeft  = Guard{"proposals left", func(s *step) bool {
		return int(s.rec.GetConsumption().GetProposals()) < s.lim.Proposals
	}}
	rechecksLeft = Guard{"rechecks left", func(s *step) bool {
		return int(s.rec.GetConsumption().GetRechecks()) < s.lim.Rechecks
	}}
)

// Guards of attempts.
var (
	isInvestigation = Guard{"a task of the plan", func(s *step) bool { return investigative(s.task.GetSlice()) }}
	isReplyWork     = Guard{"a task of the reply", func(s *step) bool {
		return s.task.GetSlice() == amendsv1.Slice_SLICE_COMPOSE || s.task.GetSlice() == amendsv1.Slice_SLICE_VERIFY
	}}
	attemptsLeft = Guard{"attempts and budget left", func(s *step) bool {
		failed := 0
		for _, a := range s.task.GetAttempts() {
			failed++
			if a.GetStatus() == amendsv1.AttemptStatus_ATTEMPT_STATUS_ACCEPTED {
				failed = 0 // a recheck starts its own count
			}
			if a.GetDispatchedAt().AsTime().Before(s.fromPeople()) {
				failed = 0 // so does what people ask for
			}
		}
		return s.retryable && failed < s.lim.Attempts
	}}
)

// fromPeople is when the case last came back from a queue or a custodian.
func (s *step) fromPeople() (at time.Time) {
	for _, e := range s.rec.GetCustody().GetEvents() {
		if e.GetTo() == QueueDesk {
			at = e.GetAt().AsTime()
		}
	}
	return at
}

// maxAttempts is what a task can hold.
const maxAttempts = 96

// attemptable reports whether a task can be asked once more.
func attemptable(n *amendsv1.TaskNode) bool {
	if n.GetSlice() == amendsv1.Slice_SLICE_SETTLE {
		return len(n.GetAttempts()) < maxSettles
	}
	return len(n.GetAttempts()) < maxAttempts
}

// makeRoom lets a person have a task asked again that holds all it can: LIVE-1
// needs that, and the log has the attempts.
func makeRoom(n *amendsv1.TaskNode) {
	if n != nil && !attemptable(n) {
		n.Attempts = nil
	}
}

// Guards of approval and effect.
var (
	enoughApprovers = Guard{"valid, approvers enough", func(s *step) bool {
		have := 1
		for _, a := range s.rec.GetApprovals() {
			if a.GetActionSha256() == s.rec.GetActionSha256() {
				have++
			}
		}
		return have >= int(s.rec.GetDecision().GetApproversNeeded())
	}}
	matchesAction = Guard{"matches the action", matches}

	differsFromAction = Guard{"differs from the action", func(s *step) bool { return !matches(s) }}
	cancelRaised      = Guard{"cancel raised", func(s *step) bool { return s.rec.GetCancelRevision() > 0 }}

	// newestAnswer: an answer of an attempt that was asked again since proves
	// nothing about what came after it; one that met the stop has its place taken
	// and is told by the version it was asked at.
	newestAnswer = Guard{"of the newest attempt", func(s *step) bool {
		a := s.task.GetAttempts()
		return len(a) > 0 && a[len(a)-1] == s.attempt && s.in.GetEnvelope().GetBasedOnVersion() == s.task.GetInputVersion()
	}}
	isNews       = Guard{"has a refund, or a doubt, that the record says nothing of", beganUnnoticed}
	isWithdrawal = Guard{"answers the withdrawal", func(s *step) bool { return s.task.GetSlice() == amendsv1.Slice_SLICE_CANCEL }}

	dispatchesLeft = Guard{"dispatches left", func(s *step) bool {
		return asked(s.task) < s.lim.EffectDispatches && attemptable(s.task)
	}}
	attemptsEverLeft = Guard{"the task can hold another attempt", func(s *step) bool { return attemptable(s.task) }}

	dispatchesEverLeft = Guard{"reconciliation tries left", func(s *step) bool {
		return asked(s.task) < 3*s.lim.EffectDispatches && attemptable(s.task)
	}}
)

// beganUnnoticed reports whether an answer has a refund, or one in doubt, of
// which the record says nothing: one attempt was refused, and another had begun.
func beganUnnoticed(s *step) bool {
	e, _ := s.in.Payload.(*amendsv1.EffectResult) // no other payload has any
	return slices.ContainsFunc(e.GetRefunds(), func(r *amendsv1.RefundResult) bool {
		return (r.GetOutcome().GetRefundId() != "" || unknownYet(r)) && !settledIn(effectOf(s.rec, e.GetActionSha256()), r.GetIdempotencyKey())
	})
}

// unknownYet reports whether nobody knows what became of a refund.
func unknownYet(r *amendsv1.RefundResult) bool {
	c := r.GetOutcome().GetClass()
	return c == amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN || c == amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP
}

// matches reports whether an acknowledgement names every refund of the action,
// with its key, payment and amount, and a provider's refund id for each
// (TRUTH-2).
func matches(s *step) bool {
	e, ok := s.in.Payload.(*amendsv1.EffectResult)
	if !ok || len(e.GetRefunds()) != len(s.rec.GetAction().GetRefunds()) {
		return false
	}
	for i, want := range s.rec.GetAction().GetRefunds() {
		got := e.GetRefunds()[i]
		if got.GetIdempotencyKey() != want.GetIdempotencyKey() || got.GetPaymentId() != want.GetPaymentId() ||
			!money.Equal(got.GetAmount(), want.GetAmount()) || got.GetOutcome().GetRefundId() == "" ||
			got.GetOutcome().GetClass() != amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED || !moving(got.GetOutcome().GetProviderStatus()) ||
			got.GetReadBack() != nil && !moving(got.GetReadBack().GetStatus()) {
			return false
		}
	}
	return true
}

// moving reports whether a refund in this status is money on its way or
// arrived. A refund that exists and failed is no refund (B15).
func moving(st amendsv1.RefundStatus) bool {
	return st == amendsv1.RefundStatus_REFUND_STATUS_PENDING || st == amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED
}

// Guards of the reply.
var (
	isDrafting = Guard{"current", func(s *step) bool {
		return s.rec.GetReply().GetStatus() == amendsv1.ReplyStatus_REPLY_STATUS_DRAFTING
	}}
	redraftsLeft = Guard{"redrafts left", func(s *step) bool {
		// What a custodian wrote is for people to write again.
		return s.rec.GetReply().GetKind() != amendsv1.ReplyKind_REPLY_KIND_WRITTEN && int(s.rec.GetReply().GetAttempts()) <= s.lim.Redrafts
	}}
)
