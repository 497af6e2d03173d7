package console

import (
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/custody"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/envelope"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var notWithPeople = deskapi.NewProblem(http.StatusConflict, deskapi.CodeNotInCustody, "the case is with the desk, not with people")

// showCustody handles GET /v1/cases/{tenant}/{case}/custody.
func (c *console) showCustody(w http.ResponseWriter, r request) *deskapi.Problem {
	rec, problem := c.read(r)
	if problem != nil {
		return problem
	}
	held := rec.GetCustody()
	if held == nil || held.GetQueue() == casework.QueueDesk {
		return notWithPeople
	}
	packet := casework.Packet(rec)
	body, err := protoJSON(packet)
	if err != nil {
		return c.fault(r, err)
	}
	out := deskapi.Custody{
		Tenant: rec.GetTenant(), CaseID: rec.GetCaseId(), OrderID: casework.OrderOf(rec), Version: rec.GetVersion(), State: stateName(rec.GetState()),
		Queue: held.GetQueue(), Custodian: held.GetCustodian(), Since: deskapi.TimeOf(held.GetSince()), Until: deskapi.TimeOf(held.GetUntil()),
		Packet: body, PacketText: custody.Text(packet), PacketSHA256: custody.SHA256(packet), Evidence: evidenceOf(rec),
		Transfers: make([]deskapi.CustodyTransfer, 0, len(held.GetEvents())),
	}
	for _, e := range held.GetEvents() {
		out.Transfers = append(out.Transfers, deskapi.CustodyTransfer{
			From: e.GetFrom(), To: e.GetTo(), Reason: e.GetReason(), PacketSHA256: e.GetPacketSha256(), At: deskapi.TimeOf(e.GetAt()),
		})
	}
	edge.WriteJSON(w, http.StatusOK, out)
	return nil
}

// relayCustody handles POST /v1/cases/{tenant}/{case}/custody. Whether the
// decision counts is for the orchestrator to say.
func (c *console) relayCustody(w http.ResponseWriter, r request) *deskapi.Problem {
	d, problem := readCustody(w, r)
	if problem != nil {
		return problem
	}
	text, _ := approval.CustodyText(d) // its form was checked when it was read
	id, problem := c.relay(r, d, signedID(envelope.CustodyDecision, d.GetSignedAt(), text, d.GetSignature()))
	if problem != nil {
		return problem
	}
	edge.WriteJSON(w, http.StatusAccepted, deskapi.Relayed{MessageID: id})
	return nil
}

// readCustody reads a custodian's decision and checks its form.
func readCustody(w http.ResponseWriter, r request) (*amendsv1.CustodyDecision, *deskapi.Problem) {
	body, problem := readSigned(w, r)
	if problem != nil {
		return nil, problem
	}
	d := new(amendsv1.CustodyDecision)
	if err := protojson.Unmarshal(body, d); err != nil {
		return nil, malformed("the body is not a CustodyDecision in ProtoJSON")
	}
	if _, err := approval.CustodyText(d); err != nil {
		return nil, malformed("a field is missing or not valid")
	}
	if d.GetTenant() != r.tenant || d.GetCaseId() != r.caseID {
		return nil, malformed("the decision is about another case than the path")
	}
	return d, nil
}
