package casework

import (
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/approval"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// inDoubt gives the refunds of the current action of which the record does not
// say what became of them.
func inDoubt(rec *amendsv1.CaseRecord) []*amendsv1.ActionRefund {
	if !rec.GetOutcomeUnknown() {
		return nil
	}
	var out []*amendsv1.ActionRefund
	for _, r := range rec.GetAction().GetRefunds() {
		if !settledIn(effectOf(rec, rec.GetActionSha256()), r.GetIdempotencyKey()) {
			out = append(out, r)
		}
	}
	return out
}

// settledIn reports whether what the executor said of an action has the outcome
// of one of its refunds.
func settledIn(e *amendsv1.EffectResult, key string) bool {
	for _, r := range e.GetRefunds() {
		if o := r.GetOutcome(); r.GetIdempotencyKey() == key {
			return o.GetRefundId() != "" || o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_REFUSED || o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN
		}
	}
	return false
}

const (
	settleTask = "settle"
	// reasonSettledAbsent is the executor's word that a custodian was right that
	// there is no refund.
	reasonSettledAbsent = "settled_absent"
	// maxSettles bounds the questions about one answer of a custodian.
	maxSettles = 24
)

// unsettleable says why a custodian's answers settle nothing. The executor
// judges them again, by its own ledger and the provider's records.
func (s *step) unsettleable(d *amendsv1.CustodyDecision) string {
	doubts := inDoubt(s.rec)
	switch {
	case len(doubts) == 0:
		return "outcome_known"
	case len(doubts) != len(d.GetSettlements()):
		return "settlement_mismatch"
	}
	for i, r := range doubts { // both in order of the payment
		if d.GetSettlements()[i].GetIdempotencyKey() != r.GetIdempotencyKey() {
			return "settlement_mismatch"
		}
	}
	return ""
}

// settleEvent says what the executor made of a custodian's answers. Only what
// it verified ends the doubt.
func (s *step) settleEvent(m *amendsv1.EffectResult) Event {
	switch c := m.GetClass(); {
	case c == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED:
		return EventAcknowledged
	case (c == amendsv1.EffectClass_EFFECT_CLASS_REFUSED || c == amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT) && s.answersAll(m):
		return EventEffectRefused
	case c == amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN:
		return EventNotBegun
	case c == amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, c == amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP, c == amendsv1.EffectClass_EFFECT_CLASS_HELD:
		return EventUnsettled
	}
	return EventSettleFailed
}

// answersAll reports whether an answer leaves none of the refunds in doubt.
func (s *step) answersAll(m *amendsv1.EffectResult) bool {
	known := map[string]bool{}
	if m.GetReason() == reasonSettledAbsent { // of what was never begun there is no more to say
		for _, st := range s.rec.GetSettlement().GetSettlements() {
			known[st.GetIdempotencyKey()] = st.GetRefundId() == ""
		}
	}
	for _, r := range m.GetRefunds() {
		switch r.GetOutcome().GetClass() {
		case amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, amendsv1.EffectClass_EFFECT_CLASS_REFUSED,
			amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN:
			known[r.GetIdempotencyKey()] = true
		default:
			known[r.GetIdempotencyKey()] = false
		}
	}
	return !slices.ContainsFunc(inDoubt(s.rec), func(r *amendsv1.ActionRefund) bool { return !known[r.GetIdempotencyKey()] })
}

// Effects of settlement.
var (
	askToSettle = Effect{"settle task", func(s *step) {
		d := s.custodyDecision()
		s.transfer(QueueReconciliation, "", approval.StepName(d.GetStep()))
		s.rec.Settlement = d
		makeRoom(s.node(TaskID(s.rec.GetCaseId(), settleTask)))
		s.dispatch(amendsv1.Slice_SLICE_SETTLE, settleTask)
		s.say("%s answered for %d refunds; the executor verifies it", d.GetCustodianId(), len(d.GetSettlements()))
	}}
	settledByItself = Effect{"no custodian's answer is asked about; custody back to the desk", func(s *step) {
		s.cancelTasks("effect_absent", amendsv1.Slice_SLICE_SETTLE)
		s.toDesk("effect_absent")
	}}
	settleFailed = Effect{"the answer settles nothing; person's queue", func(s *step) {
		m, _ := s.in.Payload.(*amendsv1.EffectResult) // the event is raised for no other payload
		reason := clip(orDefault(m.GetReason(), strings.ToLower(effectWord(m.GetClass()))), 64)
		s.endAttempt()
		s.task.Status, s.task.Reason = amendsv1.TaskStatus_TASK_STATUS_FAILED, reason
		s.rec.Deadlines.Effect = s.after(s.lim.EffectDeadlineMax)
		s.transfer(QueueReconciliation, "", reason)
		s.say("executor: the custodian's answer does not settle it: %s", reason)
	}}
)
