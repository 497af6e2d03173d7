package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// writeReport writes a service's report of a run, on its own credential.
func (d *desk) writeReport(t *testing.T, service roles.Service, run string, edit func(*amendsv1.ReconciliationReport)) {
	t.Helper()
	r := &amendsv1.ReconciliationReport{RunId: run, Tenant: "acme-in", Service: string(service), StartedAt: timestamppb.New(at), FinishedAt: timestamppb.New(at), Orders: 2}
	if edit != nil {
		edit(r)
	}
	data, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	conn := d.writes
	if service != roles.Orchestrator {
		conn = d.broker.Connect(service)
	}
	if _, err := conn.Publish(t.Context(), subject.Report(string(service), "acme-in", run), data); err != nil {
		t.Fatal(err)
	}
}

// A run is asked for, audited, and shown as far as its reports are there; while
// it is under way there is no other.
func TestReconciliation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	maya := d.client(t, d.url, acmeToken)
	asked, err := maya.Reconcile(t.Context(), deskapi.ReconciliationRequest{Tenant: "acme-in", DryRun: true})
	if err != nil || asked.RunID == "" || asked.Self != deskapi.ReconciliationPath("acme-in", asked.RunID) {
		t.Fatalf("%+v, %v", asked, err)
	}
	if log := d.audit(t, subject.Audit("console", "acme-in")); !slices.Equal(log, []string{"maya reconcile.dry_run " + asked.RunID + " asked: ", "maya reconcile.dry_run " + asked.RunID + " done: "}) {
		t.Errorf("audited %q", log)
	}
	m, err := d.writes.Last(t.Context(), roles.StreamControl, subject.Reconcile("acme-in"))
	req := new(amendsv1.ReconcileRequest)
	if err != nil || proto.Unmarshal(m.Data, req) != nil || req.GetRunId() != asked.RunID || !req.GetDryRun() || req.GetBy() != "maya" {
		t.Fatalf("stored %v, %v", req, err)
	}
	run, err := maya.Reconciliation(t.Context(), "acme-in", asked.RunID)
	if err != nil || run.Status != deskapi.RunRunning || run.Agrees || !run.DryRun || len(run.Waiting) != 2 {
		t.Errorf("before: %+v, %v", run, err)
	}
	_, err = maya.Reconcile(t.Context(), deskapi.ReconciliationRequest{Tenant: "acme-in"})
	if p := isProblem(t, err, deskapi.CodeReconciling); !strings.Contains(p.Detail, asked.RunID) {
		t.Errorf("a second one: %+v", p)
	}

	d.writeReport(t, roles.RefundExecutor, asked.RunID, func(r *amendsv1.ReconciliationReport) {
		r.Findings = []*amendsv1.EffectFinding{{
			FindingId: "find-1", Code: "refund_without_intent", Tenant: "acme-in", OrderId: "8472", RefundId: "rf_1", SeenAt: timestamppb.New(at),
			Records: []*amendsv1.FindingRecord{{Source: "provider", Kind: "refund", Id: "rf_1", Amount: &amendsv1.Money{Minor: 100, Currency: "INR"}, Status: "succeeded"}},
		}}
	})
	if run, err = maya.Reconciliation(t.Context(), "acme-in", asked.RunID); err != nil || run.Status != deskapi.RunRunning || len(run.Reports) != 1 || len(run.Waiting) != 1 {
		t.Errorf("between: %+v, %v", run, err)
	}
	d.writeReport(t, roles.Orchestrator, asked.RunID, nil)
	run, err = maya.Reconciliation(t.Context(), "acme-in", asked.RunID)
	if err != nil || run.Status != deskapi.RunComplete || run.Agrees || len(run.Reports) != 2 {
		t.Fatalf("after: %+v, %v", run, err)
	}
	if f := run.Reports[0].Findings[0]; f.CaseID != "fnd-1" || f.Records[0].Amount.Minor != 100 {
		t.Errorf("finding %+v", f)
	}
	d.writeReport(t, roles.Orchestrator, asked.RunID, func(r *amendsv1.ReconciliationReport) { r.FinishedAt = nil })
	if run, err = maya.Reconciliation(t.Context(), "acme-in", asked.RunID); err != nil || run.Status != deskapi.RunRunning || len(run.Reports) != 2 || !slices.Equal(run.Waiting, []string{"orchestrator"}) {
		t.Errorf("a report that is not finished is no end: %+v, %v", run, err)
	}
	d.writeReport(t, roles.Orchestrator, asked.RunID, nil)
	next, err := maya.Reconcile(t.Context(), deskapi.ReconciliationRequest{Tenant: "acme-in"})
	if err != nil || next.RunID == asked.RunID {
		t.Fatalf("the next: %+v, %v", next, err)
	}
	d.writeReport(t, roles.RefundExecutor, next.RunID, func(r *amendsv1.ReconciliationReport) { r.Incomplete = "provider_unavailable" })
	d.writeReport(t, roles.Orchestrator, next.RunID, nil)
	if run, err = maya.Reconciliation(t.Context(), "acme-in", next.RunID); err != nil || run.Agrees || run.Status != deskapi.RunComplete {
		t.Errorf("an incomplete one is no clean bill: %+v, %v", run, err)
	}
}

// Staff see the runs of their tenants; others are like unknown ones (TENANT-1).
func TestReconciliationIsOfTheirTenants(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	asked, err := d.client(t, d.url, acmeToken).Reconcile(t.Context(), deskapi.ReconciliationRequest{Tenant: "acme-in"})
	if err != nil {
		t.Fatal(err)
	}
	ravi := d.client(t, d.url, betaToken)
	_, err = ravi.Reconcile(t.Context(), deskapi.ReconciliationRequest{Tenant: "acme-in"})
	isProblem(t, err, deskapi.CodeNotFound)
	_, foreign := ravi.Reconciliation(t.Context(), "acme-in", asked.RunID)
	_, unknown := ravi.Reconciliation(t.Context(), "beta", "run-x")
	if isProblem(t, foreign, deskapi.CodeNotFound).Error() != isProblem(t, unknown, deskapi.CodeNotFound).Error() {
		t.Errorf("%v and %v differ", foreign, unknown)
	}
	for name, c := range map[string]struct {
		method, path, body string
		auth               func(*http.Request)
		want               deskapi.Code
	}{
		"no token":      {"POST", "/v1/reconciliations", `{"tenant":"acme-in"}`, nil, deskapi.CodeUnauthenticated},
		"page's token":  {"POST", "/v1/reconciliations", `{"tenant":"acme-in"}`, basic(acmeToken), deskapi.CodeUnauthenticated},
		"no tenant":     {"POST", "/v1/reconciliations", `{}`, bearer(acmeToken), deskapi.CodeBodyInvalid},
		"odd tenant":    {"POST", "/v1/reconciliations", `{"tenant":"acme.>"}`, bearer(acmeToken), deskapi.CodeBodyInvalid},
		"unknown field": {"POST", "/v1/reconciliations", `{"tenant":"acme-in","force":true}`, bearer(acmeToken), deskapi.CodeBodyInvalid},
		"two objects":   {"POST", "/v1/reconciliations", `{"tenant":"acme-in"}{}`, bearer(acmeToken), deskapi.CodeBodyInvalid},
		"not JSON":      {"POST", "/v1/reconciliations", `tenant=acme-in`, bearer(acmeToken), deskapi.CodeBodyInvalid},
		"too large":     {"POST", "/v1/reconciliations", `{"tenant":"` + strings.Repeat("a", 2000) + `"}`, bearer(acmeToken), deskapi.CodeBodyTooLarge},
		"odd run":       {"GET", "/v1/reconciliations/acme-in/a.b", "", bearer(acmeToken), deskapi.CodeNotFound},
		"method":        {"GET", "/v1/reconciliations", "", bearer(acmeToken), deskapi.CodeMethod},
	} {
		if got := d.ask(t, c.method, c.path, c.body, c.auth); got.code() != c.want {
			t.Errorf("%s: %d %s, want %s", name, got.status, got.body, c.want)
		}
	}
}

// silent is a broker that fails where it is told to.
type silent struct {
	broker
	audit, control error
	outcomes       *[]string
}

func (s silent) LastDirect(context.Context, string, string) (bus.Stored, error) {
	return bus.Stored{}, bus.ErrNotFound
}

func (s silent) Publish(_ context.Context, subj string, data []byte, _ ...bus.PublishOption) (uint64, error) {
	if strings.HasPrefix(subj, "audit.") {
		e := new(amendsv1.AuditEvent)
		if err := proto.Unmarshal(data, e); err != nil {
			return 0, err
		}
		*s.outcomes = append(*s.outcomes, e.GetOutcome())
		return 1, s.audit
	}
	return 1, s.control
}

// Without the audit log, or without the broker, nothing is begun, and the log
// has what became of what was asked.
func TestReconciliationWithoutTheBroker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bus      silent
		want     deskapi.Code
		outcomes []string
	}{
		"audit":     {silent{audit: errors.New("away")}, deskapi.CodeAuditUnavailable, []string{"asked"}},
		"control":   {silent{control: errors.New("away")}, deskapi.CodeUnavailable, []string{"asked", "unavailable"}},
		"uncertain": {silent{control: bus.ErrUncertain}, deskapi.CodeUnavailable, []string{"asked", "uncertain"}},
	} {
		var outcomes []string
		c.bus.outcomes = &outcomes
		h, err := build(testConfig(), Deps{}, c.bus, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(h)
		_, err = (&desk{}).client(t, s.URL, acmeToken).Reconcile(t.Context(), deskapi.ReconciliationRequest{Tenant: "acme-in"})
		s.Close()
		if p := isProblem(t, err, c.want); p.RetryAfter == 0 || !slices.Equal(outcomes, c.outcomes) {
			t.Errorf("%s: %+v, audited %q", name, p, outcomes)
		}
	}
}
