package casework

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A finding says that two records of money disagree. It is a case for people,
// once: of the case it is about, else of one that exists only for people.

// maxFindings is what a record can hold.
const maxFindings = 32

// findingOf gives the finding an input brings, or nil.
func findingOf(p proto.Message) *amendsv1.EffectFinding {
	switch m := p.(type) {
	case *amendsv1.EffectFinding:
		return m
	case *amendsv1.CaseFinding:
		return m.GetFinding()
	}
	return nil
}

// finder is who may say so.
func finder(p proto.Message) roles.Service {
	if _, own := p.(*amendsv1.CaseFinding); own {
		return roles.Orchestrator
	}
	return roles.RefundExecutor
}

// OpensFinding gives the case that a finding opens when the one it was sent to
// does not exist. The shell names it in the input (OpensCaseId).
func OpensFinding(p proto.Message) (caseID string, ok bool) {
	f := findingOf(p)
	return ident.FindingCase(f.GetFindingId()), f != nil
}

// failureFound is the kind of a hint that the desk's own comparison gives.
const failureFound = "refund.found_failed"

// ofFailure reports whether a finding says that a refund failed, and the customer
// was told otherwise.
func ofFailure(f *amendsv1.EffectFinding) bool {
	return f.GetCode() == codeFailedLater || f.GetCode() == CodeFailureUntold
}

// ownFailure reports whether a finding says that of a refund this case made: the
// case then goes the way of a webhook's news (see confirm.go).
func (s *step) ownFailure(f *amendsv1.EffectFinding) bool {
	return ofFailure(f) && s.ownRefund(f.GetRefundId())
}

// openForFinding gives the record of a case that exists only for people: it has
// no customer, no channel and no reply.
func openForFinding(in Input, rec *amendsv1.CaseRecord) *amendsv1.CaseRecord {
	f := findingOf(in.Payload)
	id := orDefault(in.GetOpensCaseId(), rec.GetCaseId())
	if f.GetTenant() != rec.GetTenant() || id != ident.FindingCase(f.GetFindingId()) || in.sender() != string(finder(in.Payload)) {
		return nil
	}
	rec.CaseId, rec.RequestId, rec.CustomerId, rec.Channel = id, id, ident.Desk, ident.Desk
	return rec
}

func (s *step) knownFinding(f *amendsv1.EffectFinding) bool {
	return slices.ContainsFunc(s.rec.GetFindings(), func(h *amendsv1.EffectFinding) bool { return h.GetFindingId() == f.GetFindingId() })
}

// OrderOf gives the order a case is about.
func OrderOf(rec *amendsv1.CaseRecord) string {
	if id := rec.GetTriage().GetOrderId(); id != "" || len(rec.GetFindings()) == 0 {
		return id
	}
	return rec.GetFindings()[0].GetOrderId()
}

// Effects of findings.
var (
	noteFinding = Effect{"record the finding", func(s *step) {
		f := findingOf(s.in.Payload)
		s.rec.Findings = append(s.rec.GetFindings(), proto.CloneOf(f))
		s.say("%s: %s of order %s", f.GetFindingId(), f.GetCode(), f.GetOrderId())
	}}
	askAboutFailure = Effect{"confirm task for the refund", func(s *step) {
		f := findingOf(s.in.Payload)
		s.keepNews(&amendsv1.ProviderEvent{OrderId: orDefault(madeBy(s.rec, f.GetRefundId()).GetAction().GetOrderId(), f.GetOrderId()), Kind: failureFound, ObjectId: f.GetRefundId()})
		s.say("%s: the executor is asked to read %s", f.GetFindingId(), f.GetRefundId())
		s.askConfirmation()
	}}
	openFinding = Effect{"queue of reconciliation", func(s *step) {
		s.transfer(QueueReconciliation, "", findingOf(s.in.Payload).GetCode())
	}}
	handOverQuietly = Effect{"custody to a person, by the queue of reconciliation", func(s *step) {
		said := s.note
		s.takeCustody(QueueReconciliation)
		s.dropReply("person_writes")
		s.rec.Reply = nil
		s.say("%s; handed to people", said)
	}}
	noteResolution = Effect{"note what it came to", func(s *step) {
		if n := s.node(TaskID(s.rec.GetCaseId(), confirmTask)); n == nil || running(n) == nil {
			s.rec.Unconfirmed, s.rec.Confirming = nil, 0
		}
		s.say("%s: %s", s.custodyDecision().GetCustodianId(), s.custodyDecision().GetReason())
	}}
)
