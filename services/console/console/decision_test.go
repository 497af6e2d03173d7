package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
)

// FuzzReadSigned: what is relayed, of an approver or a custodian, is a whole
// decision about the path's case.
func FuzzReadSigned(f *testing.F) {
	for _, s := range []string{
		`{"approvalId":"apr-8472-1","verdict":"VERDICT_APPROVE","tenant":"acme-in","caseId":"req-8472","actionSha256":"` + strings.Repeat("ab", 32) +
			`","approverId":"maya","keyId":"maya-1","signedAt":"2026-03-12T10:20:00Z","expires":"2026-03-12T10:50:00Z","signature":"` + strings.Repeat("A", 86) + `=="}`,
		`{"tenant":"acme-in","caseId":"req-8472","step":"CUSTODY_STEP_TAKE","packetSha256":"` + strings.Repeat("ab", 32) +
			`","custodianId":"maya","keyId":"maya-1","signedAt":"2026-03-12T10:20:00Z","signature":"` + strings.Repeat("A", 86) + `=="}`,
		"{}", "null", `{"verdict":9}`, `{"caseId":"req-8472","caseId":"req-1"}`, `{"tenant":"acme.>"}`, "\xff", `{"reason":"\u202ex"}`, `{"signedAt":"0001-01-01T00:00:00Z"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		ask := func() request {
			return request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)), tenant: "acme-in", caseID: "req-8472"}
		}
		judge := func(problem *deskapi.Problem, tenant, caseID string, err error) {
			switch {
			case problem != nil && problem.Status != http.StatusBadRequest && problem.Status != http.StatusRequestEntityTooLarge:
				t.Fatalf("refused with %v", problem)
			case problem == nil && (err != nil || tenant != "acme-in" || caseID != "req-8472" || len(body) > maxDecision):
				t.Fatalf("relays a decision about %s of %s, %v", caseID, tenant, err)
			}
		}
		d, problem := readDecision(httptest.NewRecorder(), ask())
		_, err := approval.DecisionText(d)
		judge(problem, d.GetTenant(), d.GetCaseId(), err)
		c, problem := readCustody(httptest.NewRecorder(), ask())
		_, err = approval.CustodyText(c)
		judge(problem, c.GetTenant(), c.GetCaseId(), err)
	})
}
