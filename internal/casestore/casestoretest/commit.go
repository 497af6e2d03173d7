package casestoretest

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Tenant is the tenant of the suite's cases.
const Tenant = "acme-in"

var at = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

// Commit gives a valid commit of one version, told apart by who wrote it.
func Commit(tenant, caseID string, version uint64, author string) *amendsv1.CaseCommit {
	stamp := timestamppb.New(at.Add(time.Duration(version) * time.Second))
	id := ident.Derive(stamp.AsTime(), caseID, author)
	return &amendsv1.CaseCommit{
		FirstVersion: version,
		Inputs: []*amendsv1.AppliedInput{{
			Envelope: &amendsv1.Envelope{
				MessageId: id, CaseId: caseID, Tenant: tenant, RequestId: caseID,
				Sender: "gateway", Recipient: "orchestrator", Type: "case.message", SchemaVersion: "1.0",
			},
			BrokerTime: stamp,
			Stream:     "INTAKE",
		}},
		Record: &amendsv1.CaseRecord{
			Tenant: tenant, CaseId: caseID, RequestId: caseID, CustomerId: "cust_5519", Channel: "web",
			Version: version, State: amendsv1.CaseState_CASE_STATE_RECEIVED,
			OpenedAt: timestamppb.New(at), UpdatedAt: stamp, TraceId: author,
			Pins: &amendsv1.Pins{Rules: "refund-rules/1", PolicyCorpus: "policy/4", ToolSchemas: "tools/1", Topology: "desk/1"},
		},
	}
}
