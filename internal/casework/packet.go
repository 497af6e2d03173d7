package casework

import (
	"slices"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/custody"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Bounds of a packet.
const (
	maxStatements = 8
	maxSources    = 64
	maxLines      = 16
)

// Field classes of the record that a custodian is shown, and those that are
// not: how the desk came to a text is no matter for whoever decides the case.
var (
	packetIncludes = []string{"decision", "payment", "policy", "customer_statements", "effect", "findings", "replies", "conflicts"}
	packetExcludes = []string{"drafts", "verifier_checks", "task_contracts", "tokens_and_cost", "transcript"}
)

// Packet gives what a custodian gets of a case, from its record alone.
func Packet(rec *amendsv1.CaseRecord) *amendsv1.CustodyPacket {
	p := &amendsv1.CustodyPacket{
		Trigger: orDefault(rec.GetCustody().GetReason(), "none"), Custodian: rec.GetCustody().GetCustodian(), Expires: rec.GetCustody().GetUntil(),
		VerifiedFacts:  established(rec.GetDecision().GetFacts()),
		IncludedFields: packetIncludes, ExcludedFields: packetExcludes,
	}
	p.Sources = first(slices.Concat(rec.GetPayment().GetCalls(), rec.GetPolicy().GetCalls()), maxSources)
	messages := rec.GetMessages()
	for _, m := range messages[max(len(messages)-maxStatements, 0):] {
		p.CustomerStatements = append(p.CustomerStatements, m.GetText())
		for _, f := range m.GetText().GetFlags() {
			p.RiskMarkers = addOnce(p.RiskMarkers, "message_"+strings.ToLower(strings.TrimPrefix(f.String(), "TEXT_FLAG_")))
		}
	}
	for _, r := range Made(rec) {
		p.CompletedActions = append(p.CompletedActions, "refund "+r.GetOutcome().GetRefundId()+" of "+money.Format(r.GetAmount())+" on "+r.GetPaymentId()+": "+statusWord(readStatus(r)))
	}
	if rec.GetCancelRevision() > 0 {
		p.Corrections = append(p.Corrections, "the customer withdrew")
	}
	for _, r := range rec.GetReplies() {
		p.Promised = append(p.Promised, replyWord(r.GetKind())+" reply of "+r.GetSentAt().AsTime().UTC().Format(time.RFC3339)+": "+r.GetText())
	}
	p.OpenQuestions = append(p.OpenQuestions, moneyQuestions(rec)...)
	if !rec.GetPayment().GetComplete() && rec.GetCustomerId() != ident.Desk {
		p.OpenQuestions = append(p.OpenQuestions, "payment evidence is missing or not complete")
	}
	for _, c := range rec.GetConflicts() {
		if c.GetResolvedBy() == "" {
			p.OpenQuestions = append(p.OpenQuestions, c.GetKind()+": "+c.GetOneSide()+" / "+c.GetOtherSide())
		}
	}
	for _, c := range rec.GetVerification().GetChecks() {
		if !c.GetSupported() {
			p.OpenQuestions = addOnce(p.OpenQuestions, "a reply was not verified: "+c.GetReason()+": "+c.GetFound())
		}
	}
	for _, d := range rec.GetPayment().GetDisputes() {
		p.RiskMarkers = addOnce(p.RiskMarkers, "dispute_"+strings.ToLower(strings.TrimPrefix(d.GetStatus().String(), "DISPUTE_STATUS_")))
	}
	for _, list := range []*[]string{&p.CompletedActions, &p.Corrections, &p.Promised, &p.OpenQuestions, &p.RiskMarkers} {
		*list = first(*list, maxLines)
		for i, text := range *list {
			(*list)[i] = clip(text, 256)
		}
	}
	for i := range p.RiskMarkers {
		p.RiskMarkers[i] = clip(p.RiskMarkers[i], 64)
	}
	return p
}

// moneyQuestions are those about refunds: what is in doubt, and what a person
// can answer to it; what did not last; which records disagree.
func moneyQuestions(rec *amendsv1.CaseRecord) (out []string) {
	for _, r := range inDoubt(rec) {
		out = append(out, "does the refund of "+money.Format(r.GetAmount())+" on "+r.GetPaymentId()+" exist? settle "+r.GetIdempotencyKey()+" with its refund id, or none")
	}
	if rec.GetOutcomeUnknown() {
		out = append(out, "the executor could not tell: "+orDefault(effectOf(rec, rec.GetActionSha256()).GetReason(), "no answer"))
		for _, t := range rec.GetTasks() {
			if t.GetSlice() == amendsv1.Slice_SLICE_SETTLE && t.GetReason() != "" {
				out = append(out, "the last answer of a custodian did not settle it: "+t.GetReason())
			}
		}
	}
	for _, e := range Effects(rec) {
		for _, r := range e.GetEffect().GetRefunds() {
			if unknownYet(r) && r.GetOutcome().GetRefundId() == "" && e.GetEffect().GetActionSha256() != rec.GetActionSha256() {
				out = append(out, "it is not known whether the refund of "+money.Format(r.GetAmount())+" on "+r.GetPaymentId()+", asked for before, was made")
			}
		}
	}
	for _, r := range Made(rec) {
		if st := readStatus(r); failed(st) {
			out = append(out, "refund "+r.GetOutcome().GetRefundId()+" of "+money.Format(r.GetAmount())+" on "+r.GetPaymentId()+" is "+statusWord(st)+": what does the customer get instead?")
		}
	}
	for _, e := range rec.GetUnconfirmed() {
		if e.GetKind() == failureFound {
			out = addOnce(out, "a comparison found that refund "+e.GetObjectId()+" failed; not confirmed")
			continue
		}
		out = addOnce(out, "the provider reported "+e.GetKind()+" of "+e.GetObjectId()+"; not confirmed")
	}
	for _, t := range rec.GetTasks() {
		if t.GetSlice() == amendsv1.Slice_SLICE_CONFIRM && t.GetStatus() == amendsv1.TaskStatus_TASK_STATUS_FAILED && len(rec.GetUnconfirmed()) > 0 {
			out = append(out, "the executor could not confirm it: "+t.GetReason())
		}
	}
	for _, f := range rec.GetFindings() {
		out = append(out, findingLine(f))
	}
	return out
}

// findingLine says what disagrees, every record with its source.
func findingLine(f *amendsv1.EffectFinding) string {
	var b strings.Builder
	b.WriteString(f.GetCode() + ", order " + f.GetOrderId())
	if f.GetRefundId() != "" {
		b.WriteString(", refund " + f.GetRefundId())
	}
	between := ": "
	for _, r := range f.GetRecords() {
		b.WriteString(between + strings.TrimRight(r.GetSource()+" "+r.GetKind()+" "+r.GetId(), " "))
		if r.GetAmount() != nil {
			b.WriteString(" " + money.Format(r.GetAmount()))
		}
		if r.GetStatus() != "" {
			b.WriteString(" " + r.GetStatus())
		}
		between = "; "
	}
	return b.String() + " (" + f.GetFindingId() + ")"
}

// PacketSHA256 names the packet of a record as it is.
func PacketSHA256(rec *amendsv1.CaseRecord) string { return custody.SHA256(Packet(rec)) }

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
