package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxReconcileBody bounds the body of a request to reconcile.
const maxReconcileBody = 1 << 10

// reporters are the services that compare: the executor the provider with the
// ledger, the orchestrator the ledger with the cases.
var reporters = []roles.Service{roles.RefundExecutor, roles.Orchestrator}

var (
	unknownTenant = deskapi.NewProblem(http.StatusNotFound, deskapi.CodeNotFound, "no such tenant")
	unknownRun    = deskapi.NewProblem(http.StatusNotFound, deskapi.CodeNotFound, "no such run, or a later one took its place before it was begun")
	notBegun      = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeAuditUnavailable, "nothing was begun").After(time.Second)
	// unconfirmedRun is one that somebody may carry out.
	unconfirmedRun = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeUnavailable, "nobody knows whether it was begun; ask again").After(time.Second)
)

// askToReconcile handles POST /v1/reconciliations. The audit log has it first,
// and afterwards what became of it, also when its caller hangs up.
// While a run is under way there is no other: the last request counts, and it
// would take the place of one that nobody has seen yet.
func (c *console) askToReconcile(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
	staff, problem := c.staff(w, edge.Bearer(r), "Bearer")
	if problem != nil {
		return problem
	}
	asked, problem := readReconcile(w, r)
	switch {
	case problem != nil:
		return problem
	case !staff.sees(asked.Tenant):
		return unknownTenant
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), changeTimeout)
	defer cancel()
	ctx, trace := traced(ctx, r)
	over, problem := c.lastRun(ctx, asked.Tenant)
	if problem != nil {
		return problem
	}
	req := &amendsv1.ReconcileRequest{
		RunId: "run-" + strings.ToLower(rand.Text()), Tenant: asked.Tenant, DryRun: asked.DryRun, By: staff.ID, At: timestamppb.New(c.now()),
	}
	if err := c.auditRun(ctx, req, trace, "asked"); err != nil {
		return notBegun
	}
	if problem := c.putRun(ctx, req, over); problem != nil {
		outcome := string(problem.Code)
		if problem == unconfirmedRun {
			outcome = "uncertain"
		}
		_ = c.auditRun(ctx, req, trace, outcome) // logged
		return problem
	}
	_ = c.auditRun(ctx, req, trace, "done")
	edge.WriteJSON(w, http.StatusAccepted, deskapi.ReconciliationAccepted{
		Tenant: asked.Tenant, RunID: req.GetRunId(), Self: deskapi.ReconciliationPath(asked.Tenant, req.GetRunId()),
	})
	return nil
}

// auditRun records what became of a request, or logs that the audit log does not
// have it.
func (c *console) auditRun(ctx context.Context, req *amendsv1.ReconcileRequest, trace, outcome string) error {
	action := "reconcile"
	if req.GetDryRun() {
		action = "reconcile.dry_run"
	}
	err := c.audit(ctx, &amendsv1.AuditEvent{Actor: req.GetBy(), Action: action, Subject: req.GetRunId(), Outcome: outcome, TraceId: trace}, req.GetTenant())
	if err != nil {
		c.log.LogAttrs(ctx, slog.LevelError, "reconciliation not audited", slog.String("tenant", req.GetTenant()), slog.String("run", req.GetRunId()),
			slog.String("outcome", outcome), slog.Any("error", err))
	}
	return err
}

// lastRun gives the sequence of the last request of a tenant, to be written
// over, and refuses while its run is under way.
func (c *console) lastRun(ctx context.Context, tenant string) (uint64, *deskapi.Problem) {
	req, seq, err := c.request(ctx, tenant)
	switch {
	case err != nil:
		return 0, c.unreadable(ctx, tenant, err)
	case req == nil, c.now().Sub(req.GetAt().AsTime()) > reconcile.RequestAge:
		return seq, nil
	}
	run, err := c.reports(ctx, tenant, req.GetRunId())
	switch {
	case err != nil:
		return 0, c.unreadable(ctx, tenant, err)
	case run.Status == deskapi.RunRunning:
		return 0, deskapi.NewProblem(http.StatusConflict, deskapi.CodeReconciling, "run "+req.GetRunId()+" is under way").After(2 * time.Second)
	}
	return seq, nil
}

// putRun writes a request over the one that was seen. After a lost
// acknowledgement it is written again: a conflict then says that something is
// there, and what is there says whether it is ours.
func (c *console) putRun(ctx context.Context, req *amendsv1.ReconcileRequest, over uint64) *deskapi.Problem {
	data, err := encode(req)
	if err != nil {
		return c.unreadable(ctx, req.GetTenant(), err)
	}
	subj := subject.Reconcile(req.GetTenant())
	_, err = c.bus.Publish(ctx, subj, data, bus.ExpectLast(over))
	if errors.Is(err, bus.ErrUncertain) && ctx.Err() == nil {
		_, err = c.bus.Publish(ctx, subj, data, bus.ExpectLast(over))
	}
	if errors.Is(err, bus.ErrConflict) {
		have, _, readErr := c.request(ctx, req.GetTenant())
		switch {
		case readErr != nil:
			return c.unreadable(ctx, req.GetTenant(), readErr)
		case have.GetRunId() == req.GetRunId():
			return nil
		}
		return deskapi.NewProblem(http.StatusConflict, deskapi.CodeReconciling, "run "+have.GetRunId()+" is under way").After(2 * time.Second)
	}
	if errors.Is(err, bus.ErrUncertain) {
		_ = c.unreadable(ctx, req.GetTenant(), err)
		return unconfirmedRun
	}
	if err != nil {
		return c.unreadable(ctx, req.GetTenant(), err)
	}
	return nil
}

// showRun handles GET /v1/reconciliations/{tenant}/{run}.
func (c *console) showRun(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
	staff, problem := c.staff(w, edge.Bearer(r), "Bearer")
	tenant, id := r.PathValue("tenant"), r.PathValue("run")
	switch {
	case problem != nil:
		return problem
	case !staff.sees(tenant) || ident.Token(id) != nil:
		return unknownRun
	}
	run, err := c.reports(r.Context(), tenant, id)
	if err != nil {
		return c.unreadable(r.Context(), tenant, err)
	}
	if len(run.Reports) == 0 {
		req, _, err := c.request(r.Context(), tenant)
		switch {
		case err != nil:
			return c.unreadable(r.Context(), tenant, err)
		case req.GetRunId() != id:
			return unknownRun
		}
		run.DryRun = req.GetDryRun()
	}
	edge.WriteJSON(w, http.StatusOK, run)
	return nil
}

// request gives the last request of a tenant and its sequence, nil when nobody
// ever asked.
func (c *console) request(ctx context.Context, tenant string) (*amendsv1.ReconcileRequest, uint64, error) {
	m, err := c.bus.LastDirect(ctx, roles.StreamControl, subject.Reconcile(tenant))
	if errors.Is(err, bus.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the last request: %w", err)
	}
	req := new(amendsv1.ReconcileRequest)
	if proto.Unmarshal(m.Data, req) != nil {
		return nil, m.Seq, nil // nobody will carry it out
	}
	return req, m.Seq, nil
}

// reports gives what has been written of a run.
func (c *console) reports(ctx context.Context, tenant, run string) (deskapi.Reconciliation, error) {
	out := deskapi.Reconciliation{Tenant: tenant, RunID: run, Status: deskapi.RunComplete, Agrees: true, Reports: []deskapi.RunReport{}}
	for _, service := range reporters {
		m, err := c.bus.LastDirect(ctx, roles.StreamReports, subject.Report(string(service), tenant, run))
		if errors.Is(err, bus.ErrNotFound) {
			out.Waiting, out.Status, out.Agrees = append(out.Waiting, string(service)), deskapi.RunRunning, false
			continue
		}
		if err != nil {
			return out, fmt.Errorf("read the report of %s: %w", service, err)
		}
		r := new(amendsv1.ReconciliationReport)
		if err := proto.Unmarshal(m.Data, r); err != nil {
			return out, fmt.Errorf("decode the report of %s: %w", service, err)
		}
		if r.GetFinishedAt() == nil { // as far as it came
			out.Waiting, out.Status, out.Agrees = append(out.Waiting, string(service)), deskapi.RunRunning, false
		}
		one := reportOf(r)
		out.DryRun = r.GetDryRun()
		out.Agrees = out.Agrees && one.Incomplete == "" && len(one.Findings) == 0 && one.Omitted == 0
		out.Reports = append(out.Reports, one)
	}
	return out, nil
}

func reportOf(r *amendsv1.ReconciliationReport) deskapi.RunReport {
	out := deskapi.RunReport{
		Service: r.GetService(), StartedAt: deskapi.TimeOf(r.GetStartedAt()), FinishedAt: deskapi.TimeOf(r.GetFinishedAt()),
		Orders: r.GetOrders(), Refunds: r.GetRefunds(), Cases: r.GetCases(), Updated: r.GetUpdated(),
		Findings: make([]deskapi.Finding, 0, len(r.GetFindings())), Omitted: r.GetOmitted(), Incomplete: r.GetIncomplete(),
	}
	for _, f := range r.GetFindings() {
		one := deskapi.Finding{
			FindingID: f.GetFindingId(), Code: f.GetCode(), OrderID: f.GetOrderId(), PaymentID: f.GetPaymentId(), RefundID: f.GetRefundId(),
			IdempotencyKey: f.GetIdempotencyKey(), CaseID: reconcile.CaseOf(f), AboutCaseID: f.GetAboutCaseId(),
			Records: make([]deskapi.FindingRecord, 0, len(f.GetRecords())), SeenAt: deskapi.TimeOf(f.GetSeenAt()),
		}
		for _, rec := range f.GetRecords() {
			shown := deskapi.FindingRecord{Source: rec.GetSource(), Kind: rec.GetKind(), ID: rec.GetId(), Status: rec.GetStatus()}
			if rec.GetAmount() != nil {
				amount := deskapi.AmountOf(rec.GetAmount())
				shown.Amount = &amount
			}
			one.Records = append(one.Records, shown)
		}
		out.Findings = append(out.Findings, one)
	}
	return out
}

func (c *console) unreadable(ctx context.Context, tenant string, err error) *deskapi.Problem {
	c.log.LogAttrs(ctx, slog.LevelWarn, "reconciliation not readable", slog.String("tenant", tenant), slog.Any("error", err))
	return unavailable
}

// readReconcile reads the body strictly.
func readReconcile(w http.ResponseWriter, r *http.Request) (deskapi.ReconciliationRequest, *deskapi.Problem) {
	var out deskapi.ReconciliationRequest
	invalid := func(detail string) (deskapi.ReconciliationRequest, *deskapi.Problem) {
		return out, deskapi.NewProblem(http.StatusBadRequest, deskapi.CodeBodyInvalid, detail)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReconcileBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return out, deskapi.NewProblem(http.StatusRequestEntityTooLarge, deskapi.CodeBodyTooLarge, "")
	}
	if err != nil {
		return invalid("the body ended early")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return invalid("want an object of tenant and dry_run")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid("something follows the object")
	}
	if ident.Token(out.Tenant) != nil {
		return invalid("tenant: want one")
	}
	return out, nil
}
