package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

// fakeRuns is a console whose run comes to an end after some looks.
func fakeRuns(t *testing.T, after int, end deskapi.Reconciliation) (args []string, asked *deskapi.ReconciliationRequest) {
	t.Helper()
	asked = new(deskapi.ReconciliationRequest)
	mux := http.NewServeMux()
	mux.Handle("POST /v1/reconciliations", edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Error(err)
		}
		edge.WriteJSON(w, 202, deskapi.ReconciliationAccepted{Tenant: asked.Tenant, RunID: "run-1"})
		return nil
	}))
	mux.Handle("GET /v1/reconciliations/acme-in/run-1", edge.Handler(func(w http.ResponseWriter, _ *http.Request) *deskapi.Problem {
		if after--; after == 0 {
			return deskapi.NewProblem(503, deskapi.CodeUnavailable, "").After(1)
		}
		if after > 0 {
			edge.WriteJSON(w, 200, deskapi.Reconciliation{Tenant: "acme-in", RunID: "run-1", Status: deskapi.RunRunning, Waiting: []string{"orchestrator"}})
			return nil
		}
		edge.WriteJSON(w, 200, end)
		return nil
	}))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	dir, _ := files(t)
	return []string{"reconcile", "--tenant", "acme-in", "--console", s.URL, "--token-file", filepath.Join(dir, "token"), "--timeout", "5s"}, asked
}

func ended(reports ...deskapi.RunReport) deskapi.Reconciliation {
	out := deskapi.Reconciliation{Tenant: "acme-in", RunID: "run-1", Status: deskapi.RunComplete, Agrees: true, Reports: reports}
	for _, r := range reports {
		out.Agrees = out.Agrees && r.Incomplete == "" && len(r.Findings) == 0 && r.Omitted == 0
	}
	return out
}

var dashboard = deskapi.Finding{
	FindingID: "find-1", Code: "refund_without_intent", OrderID: "8472", PaymentID: "pay_8472_b", RefundID: "rf_1", CaseID: "fnd-1",
	Records: []deskapi.FindingRecord{
		{Source: "provider", Kind: "refund", ID: "rf_1\x1b[2J", Amount: &deskapi.Amount{Minor: 5000, Currency: "INR"}, Status: "succeeded"},
		{Source: "ledger", Kind: "intent", Status: "absent"},
	},
}

// What a run came to is told in words, in JSON and by the exit code.
func TestReconcile(t *testing.T) {
	t.Parallel()
	clean := deskapi.RunReport{Service: "orchestrator", Orders: 20, Cases: 20}
	for name, c := range map[string]struct {
		end  deskapi.Reconciliation
		code int
		out  []string
		err  string
	}{
		"agrees": {
			ended(deskapi.RunReport{Service: "refund-executor", Orders: 20, Refunds: 20, Updated: 3}, clean), exitDone,
			[]string{"refund-executor 20 20 0 3 0 0 none", "all agrees (run-1)"},
			"",
		},
		"finding": {
			ended(deskapi.RunReport{Service: "refund-executor", Findings: []deskapi.Finding{dashboard}}, clean), exitDisagrees,
			[]string{`refund_without_intent 8472 pay_8472_b rf_1 fnd-1 provider refund rf_1\x1b[2J ₹50.00 succeeded | ledger intent absent`, "also when that case is settled", "--queue reconciliation"},
			"findings: 1",
		},
		"omitted":    {ended(deskapi.RunReport{Service: "refund-executor", Omitted: 7}, clean), exitDisagrees, nil, "findings: 7"},
		"incomplete": {ended(deskapi.RunReport{Service: "refund-executor", Incomplete: "provider_unavailable"}, clean), exitIncomplete, nil, "not everything was looked at: refund-executor: provider_unavailable"},
		"both": {
			ended(deskapi.RunReport{Service: "refund-executor", Findings: []deskapi.Finding{dashboard}, Incomplete: "bound_met"}, clean), exitDisagrees,
			nil, "findings: 1, and not everything was looked at",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, asked := fakeRuns(t, 3, c.end)
			got := amends(t, nil, args...)
			squeezed := strings.Join(strings.Fields(got.out), " ")
			for _, want := range c.out {
				if !strings.Contains(squeezed, want) {
					t.Errorf("not told %q:\n%s", want, got.out)
				}
			}
			if got.code != c.code || !strings.Contains(got.err, c.err) || !strings.Contains(got.err, "run-1: waiting for orchestrator") || asked.DryRun || strings.Contains(got.out, "\x1b") {
				t.Errorf("%+v", got)
			}
			args, asked = fakeRuns(t, 0, c.end)
			got = amends(t, nil, append(args, "--json", "--dry-run")...)
			var out deskapi.Reconciliation
			if err := json.Unmarshal([]byte(got.out), &out); err != nil || got.code != c.code || out.RunID != "run-1" || !asked.DryRun || (got.err == "") != (c.code == exitDone) {
				t.Errorf("for machines: %+v, %v", got, err)
			}
		})
	}
}

// A run that does not come to an end in time is no clean bill.
func TestReconcileInTime(t *testing.T) {
	t.Parallel()
	args, _ := fakeRuns(t, 1_000_000, deskapi.Reconciliation{})
	got := amends(t, nil, append(args[:len(args)-1], "1s")...)
	if got.code != exitIncomplete || !strings.Contains(got.err, "run run-1 has no finished report yet of orchestrator") {
		t.Errorf("%+v", got)
	}
}

// A console that is gone after it took the request is named, while it is waited
// for and in the end.
func TestReconcileSaysWhyItCannotRead(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("POST /v1/reconciliations", edge.Handler(func(w http.ResponseWriter, _ *http.Request) *deskapi.Problem {
		edge.WriteJSON(w, 202, deskapi.ReconciliationAccepted{Tenant: "acme-in", RunID: "run-1"})
		return nil
	}))
	mux.HandleFunc("GET /v1/reconciliations/acme-in/run-1", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close()
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	dir, _ := files(t)
	args := []string{"reconcile", "--tenant", "acme-in", "--console", s.URL, "--token-file", filepath.Join(dir, "token"), "--timeout", "1s"}
	got := amends(t, nil, args...)
	for _, want := range []string{"run-1: asking again: GET /v1/reconciliations/acme-in/run-1: ", "not everything was looked at: run run-1 could not be read: GET /v1/reconciliations/acme-in/run-1: "} {
		if got.code != exitIncomplete || !strings.Contains(got.err, want) {
			t.Errorf("not told %q: %+v", want, got)
		}
	}
	if got = amends(t, nil, append(args, "--json")...); got.code != exitIncomplete || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "could not be read: GET ") {
		t.Errorf("for machines: %+v", got)
	}
}
