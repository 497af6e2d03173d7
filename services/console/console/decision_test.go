package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/approval"
)

// FuzzReadDecision: what is relayed is a whole decision about the path's case.
func FuzzReadDecision(f *testing.F) {
	for _, s := range []string{
		`{"approvalId":"apr-8472-1","verdict":"VERDICT_APPROVE","tenant":"acme-in","caseId":"req-8472","actionSha256":"` + strings.Repeat("ab", 32) +
			`","approverId":"maya","keyId":"maya-1","signedAt":"2026-03-12T10:20:00Z","expires":"2026-03-12T10:50:00Z","signature":"` + strings.Repeat("A", 86) + `=="}`,
		"{}", "null", `{"verdict":9}`, `{"caseId":"req-8472","caseId":"req-1"}`, `{"tenant":"acme.>"}`, "\xff", `{"reason":"\u202ex"}`, `{"signedAt":"0001-01-01T00:00:00Z"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)), tenant: "acme-in", caseID: "req-8472"}
		d, problem := readDecision(httptest.NewRecorder(), r)
		switch {
		case problem != nil && problem.Status != http.StatusBadRequest && problem.Status != http.StatusRequestEntityTooLarge:
			t.Fatalf("refused with %v", problem)
		case problem != nil:
			return
		}
		if _, err := approval.DecisionText(d); err != nil || d.GetTenant() != r.tenant || d.GetCaseId() != r.caseID || len(body) > maxDecision {
			t.Fatalf("relays %v, %v", d, err)
		}
		if a, b := decisionID(d), decisionID(d); a != b {
			t.Fatalf("one decision has the ids %s and %s", a, b)
		}
	})
}
