package console

import (
	"net/http"
	"strings"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var noAction = deskapi.NewProblem(http.StatusConflict, deskapi.CodeNoAction, "the case proposes no action")

// showAction handles GET /v1/cases/{tenant}/{case}/action.
func (c *console) showAction(w http.ResponseWriter, r request) *deskapi.Problem {
	rec, problem := c.read(r)
	if problem != nil {
		return problem
	}
	if rec.GetAction() == nil {
		return noAction
	}
	text, err := approval.ActionText(rec.GetAction())
	if err != nil {
		return c.fault(r, err)
	}
	sum, err := approval.ActionSHA256(rec.GetAction())
	if err != nil {
		return c.fault(r, err)
	}
	body, err := protoJSON(rec.GetAction())
	if err != nil {
		return c.fault(r, err)
	}
	edge.WriteJSON(w, http.StatusOK, deskapi.Action{
		Tenant: rec.GetTenant(), CaseID: rec.GetCaseId(), Version: rec.GetVersion(), State: stateName(rec.GetState()),
		Action: body, ActionText: text, ActionSHA256: sum, Evidence: evidenceOf(rec),
		ApproversNeeded: rec.GetDecision().GetApproversNeeded(), ApprovalsRecorded: len(rec.GetApprovals()),
		NextApprovalID: approval.ID(rec.GetCaseId(), len(rec.GetApprovals())+1),
	})
	return nil
}

// evidenceOf sums up what the action rests on.
func evidenceOf(rec *amendsv1.CaseRecord) deskapi.Evidence {
	p, d := rec.GetPayment(), rec.GetDecision()
	out := deskapi.Evidence{
		Complete: d.GetEvidenceComplete(), Reason: d.GetReason(), PolicyCitation: d.GetPolicyCitation(),
		PolicyQuote: rec.GetPolicy().GetPassage().GetQuote().GetText(),
		Captures:    make([]deskapi.Capture, 0, len(p.GetCaptures())),
		Refunds:     make([]deskapi.Refund, 0, len(p.GetRefunds())),
		Disputes:    make([]deskapi.Dispute, 0, len(p.GetDisputes())),
		Conflicts:   make([]deskapi.Conflict, 0, len(rec.GetConflicts())),
		CallIDs:     append(make([]string, 0, len(d.GetCallIds())), d.GetCallIds()...),
	}
	if total := p.GetOrder().GetTotal(); total != nil {
		amount := deskapi.AmountOf(total)
		out.OrderTotal = &amount
	}
	for _, x := range p.GetCaptures() {
		out.Captures = append(out.Captures, deskapi.Capture{
			PaymentID: x.GetPaymentId(), Amount: deskapi.AmountOf(x.GetAmount()),
			Status: enumName(x.GetStatus().String(), "CAPTURE_STATUS_"), SettledAt: deskapi.TimeOf(x.GetSettledAt()),
		})
	}
	for _, x := range p.GetRefunds() {
		out.Refunds = append(out.Refunds, deskapi.Refund{
			RefundID: x.GetRefundId(), PaymentID: x.GetPaymentId(), Amount: deskapi.AmountOf(x.GetAmount()),
			Status: enumName(x.GetStatus().String(), "REFUND_STATUS_"),
		})
	}
	for _, x := range p.GetDisputes() {
		out.Disputes = append(out.Disputes, deskapi.Dispute{
			DisputeID: x.GetDisputeId(), PaymentID: x.GetPaymentId(), Status: enumName(x.GetStatus().String(), "DISPUTE_STATUS_"),
		})
	}
	for _, x := range rec.GetConflicts() {
		out.Conflicts = append(out.Conflicts, deskapi.Conflict{Kind: x.GetKind(), OneSide: x.GetOneSide(), OtherSide: x.GetOtherSide(), ResolvedBy: x.GetResolvedBy()})
	}
	return out
}

// enumName gives CAPTURE_STATUS_SETTLED as settled.
func enumName(s, prefix string) string { return strings.ToLower(strings.TrimPrefix(s, prefix)) }
