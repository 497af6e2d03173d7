package reconcile

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Bounds of a report.
const (
	MaxFindings = 500
	// maxReport keeps a report well below the size of a message, in bytes.
	maxReport = 256 << 10
)

// Reasons for which a report is incomplete, besides those of a comparison.
const (
	// ReasonNotConfigured: the service does not answer for the tenant.
	ReasonNotConfigured = "tenant_not_configured"
	// ReasonTooMany: a bound was met before everything was looked at.
	ReasonTooMany = "bound_met"
	// ReasonTimeout: the run took too long.
	ReasonTimeout = "timeout"
	// ReasonLedger, ReasonCases and ReasonProvider: a read failed.
	ReasonLedger   = "ledger_unreadable"
	ReasonCases    = "cases_unreadable"
	ReasonProvider = "provider_unavailable"
	// ReasonUnreadable: something in a stream cannot be understood.
	ReasonUnreadable = "records_unreadable"
	// ReasonBusy: an order changed whenever it was looked at.
	ReasonBusy = "order_busy"
	// ReasonNotSent: a finding was made and could not be handed on.
	ReasonNotSent = "finding_not_sent"
	// ReasonNotKept: findings could not be written down, so the statuses that
	// gave rise to them are not recorded.
	ReasonNotKept = "report_not_kept"
	// ReasonTooOld: the request was first seen when it was older than RequestAge.
	ReasonTooOld = "request_too_old"
	// ReasonClock: the service's clock and the broker's differ, or nobody knows.
	ReasonClock = "clocks_differ"
)

// Report collects what one run finds. It is safe for concurrent use.
type Report struct {
	mu   sync.Mutex
	out  *amendsv1.ReconciliationReport
	size int
	seen map[string]bool
	// keep writes it as it is; nil where nobody reads it.
	keep func(ctx context.Context, r *amendsv1.ReconciliationReport) error
}

// NewReport begins the report of a run.
func NewReport(run Run, service roles.Service, at time.Time) *Report {
	return &Report{seen: map[string]bool{}, out: &amendsv1.ReconciliationReport{
		RunId: run.ID, Tenant: run.Tenant, Service: string(service), DryRun: run.DryRun, StartedAt: timestamppb.New(at),
	}}
}

// Found adds a finding, once; those that do not fit are counted.
func (r *Report) Found(f *amendsv1.EffectFinding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[f.GetFindingId()] {
		return
	}
	r.seen[f.GetFindingId()] = true
	size := sizeOf(f)
	if len(r.out.GetFindings()) >= MaxFindings || r.size+size > maxReport {
		r.out.Omitted++
		return
	}
	r.size += size
	r.out.Findings = append(r.out.Findings, f)
}

// Count adds to what was compared and recorded.
func (r *Report) Count(orders, refunds, cases, updated int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Orders += uint64(max(orders, 0))
	r.out.Refunds += uint64(max(refunds, 0))
	r.out.Cases += uint64(max(cases, 0))
	r.out.Updated += uint64(max(updated, 0))
}

// Incomplete says why not everything was looked at; the first reason stays.
func (r *Report) Incomplete(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out.GetIncomplete() == "" {
		r.out.Incomplete = reason
	}
}

// Keep makes readable what was found so far, as a report that is not finished.
// No crash and no other replica's report takes it away again.
func (r *Report) Keep(ctx context.Context) error {
	if r.keep == nil {
		return nil
	}
	return r.keep(ctx, r.Now())
}

// Now gives the report as far as it came.
func (r *Report) Now() *amendsv1.ReconciliationReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return proto.CloneOf(r.out)
}

// finish gives the report as it is written.
func (r *Report) finish(at time.Time) *amendsv1.ReconciliationReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.FinishedAt = timestamppb.New(at)
	return r.out
}

// CaseOf gives the case people get a finding with: the one it is about, else one
// of its own.
func CaseOf(f *amendsv1.EffectFinding) string {
	if f.GetAboutCaseId() != "" {
		return f.GetAboutCaseId()
	}
	return ident.FindingCase(f.GetFindingId())
}

// Envelope addresses a finding to the orchestrator. Its id follows from the
// finding's alone, so that a case meets it once.
func Envelope(f *amendsv1.EffectFinding, caseID string, sender roles.Service) *amendsv1.Envelope {
	return &amendsv1.Envelope{
		MessageId: ident.Derive(time.UnixMilli(0), "finding", string(sender), f.GetFindingId(), caseID), Tenant: f.GetTenant(), CaseId: caseID, RequestId: caseID,
		Sender: string(sender), Recipient: string(roles.Orchestrator), Purpose: "reconciliation", SentAt: f.GetSeenAt(),
	}
}

// Sent remembers which findings a process has handed on. It spares messages and
// decides nothing: whoever forgets sends the same message again.
type Sent struct {
	mu  sync.Mutex
	ids map[string]bool
}

// maxSent bounds what is remembered.
const maxSent = 100_000

// Has reports whether a finding was handed on.
func (s *Sent) Has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

// Add remembers one.
func (s *Sent) Add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil || len(s.ids) >= maxSent {
		s.ids = map[string]bool{}
	}
	s.ids[id] = true
}

// Forget forgets all: the broker may have lost what was sent.
func (s *Sent) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = nil
}
