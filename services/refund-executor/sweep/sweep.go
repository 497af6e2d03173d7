package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

const (
	// atOnce bounds the orders that are read at the provider side by side.
	atOnce = 4
	// maxSends bounds the new findings one run hands on; the next goes on.
	maxSends = reconcile.MaxFindings
	// maxLooks bounds how often an order that keeps changing is read.
	maxLooks = 3
)

// Bus is what the sweep needs of the executor's connection.
type Bus interface {
	reconcile.Bus
	reconcile.Reader
	Time(ctx context.Context, consumer string) (time.Time, error)
	Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error)
}

// Provider is what the sweep reads.
type Provider interface {
	provider.Lister
	ReadOrder(ctx context.Context, tenant, order string) (provider.Order, error)
}

// Deps are the sweep's collaborators.
type Deps struct {
	Bus      Bus
	Store    effectstore.Store
	Provider Provider
	Now      func() time.Time
	Log      *slog.Logger
	Meter    metric.Meter
}

// Sweep compares. One is made for a process.
type Sweep struct {
	Deps
	cfg      reconcile.Config
	server   *reconcile.Server
	sent     reconcile.Sent
	orders   indexes
	findings metric.Int64Counter
}

// New gives a sweep.
func New(cfg reconcile.Config, d Deps) (*Sweep, error) {
	s := &Sweep{Deps: d, cfg: cfg}
	var err error
	s.findings, err = d.Meter.Int64Counter("amends_reconcile_findings", metric.WithDescription("Findings of reconciliation that were handed on, by code."))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	s.server = reconcile.New(reconcile.Options{
		Config: cfg, Service: roles.RefundExecutor, Bus: d.Bus, Now: d.Now, Log: d.Log, Compare: s.compare,
		Time: func(ctx context.Context) (time.Time, error) {
			return d.Bus.Time(ctx, roles.TaskConsumer(roles.RefundExecutor))
		},
	})
	return s, nil
}

// Serve carries out runs until ctx ends.
func (s *Sweep) Serve(ctx context.Context) error { return s.server.Serve(ctx) }

// Forget drops what is remembered of the broker's messages: it may have lost
// some. The ledger it does not lose; the next run looks whether it is the same.
func (s *Sweep) Forget() {
	s.sent.Forget()
	s.orders.brokers.Add(1)
	s.server.Rewind()
}

// pass is one run under way.
type pass struct {
	*Sweep
	reconcile.Run
	report *reconcile.Report
	sends  atomic.Int64
	mu     sync.Mutex
	// found are the orders with findings whose statuses moved on.
	found []observed
}

// observed is what an order's comparison came to.
type observed struct {
	books ledger.Books
	moved []ledger.Moved
	seq   uint64
}

func (s *Sweep) compare(ctx context.Context, run reconcile.Run, r *reconcile.Report) {
	p := &pass{Sweep: s, Run: run, report: r}
	since := run.At.Add(-s.cfg.Window)
	orders, err := s.orders.walk(ctx, s.Bus, run.Tenant, since)
	if err != nil {
		p.incomplete(ctx, err, reasonOf(err, reconcile.ReasonLedger))
	}
	listed, err := p.list(ctx, since)
	if err != nil {
		p.incomplete(ctx, err, reasonOf(err, reconcile.ReasonProvider))
	}
	for id := range listed {
		orders[id] = true
	}
	todo, all := s.orders.next(run.Tenant, orders, s.cfg.MaxOrders)
	if !all {
		r.Incomplete(reconcile.ReasonTooMany)
	}
	var g errgroup.Group // without a shared end: one order that fails holds up no other
	g.SetLimit(atOnce)
	for i, id := range todo {
		if ctx.Err() != nil { // the time is up
			s.orders.leave(run.Tenant, todo[max(i-atOnce, 0)])
			break
		}
		g.Go(func() error { p.order(ctx, id, listed[id]); return nil })
	}
	_ = g.Wait() // they report for themselves
	p.recordFound(ctx)
}

func (p *pass) incomplete(ctx context.Context, err error, reason string) {
	if ctx.Err() != nil {
		reason = reconcile.ReasonTimeout // whatever came of it
	}
	p.report.Incomplete(reason)
	p.Log.WarnContext(ctx, "reconciliation misses something", slog.String("tenant", p.Tenant), slog.String("run", p.ID), slog.String("reason", reason), slog.String("error", err.Error()))
}

// order compares the books of one order, and acts on what they come to.
func (p *pass) order(ctx context.Context, id string, listed []*amendsv1.Refund) {
	if ident.Token(id) != nil || subject.ReservedOrder(id) {
		// It goes into no subject; findings and the log have it quoted.
		books := ledger.Books{Tenant: p.Tenant, OrderID: id, Listed: listed, At: p.At}
		p.act(ctx, books, ledger.Balance{Findings: books.Unusable()}, 0)
		p.report.Count(0, len(listed), 0, 0)
		return
	}
	for range maxLooks {
		entry, seq, _, err := p.Store.Entry(ctx, p.Tenant, id)
		if err != nil {
			p.incomplete(ctx, err, reconcile.ReasonLedger)
			return
		}
		view, err := p.read(ctx, id)
		if err != nil {
			p.incomplete(ctx, err, reconcile.ReasonProvider)
			return
		}
		_, again, _, err := p.Store.Entry(ctx, p.Tenant, id)
		if err != nil {
			p.incomplete(ctx, err, reconcile.ReasonLedger)
			return
		}
		if seq == again {
			books := ledger.Books{
				Tenant: p.Tenant, OrderID: id, Entry: entry, View: view, Listed: listed, At: p.At, Grace: p.cfg.Grace, InDoubt: p.cfg.InDoubt,
			}
			p.act(ctx, books, books.Balance(), seq)
			return
		}
	}
	p.report.Incomplete(reconcile.ReasonBusy)
}

// act reports what an order comes to, hands it on, and records what moved on.
func (p *pass) act(ctx context.Context, books ledger.Books, out ledger.Balance, seq uint64) {
	handedOn := true
	for _, f := range out.Findings {
		p.report.Found(f)
		handedOn = p.send(ctx, f) && handedOn
	}
	updated := 0
	switch o := (observed{books, out.Moved, seq}); {
	case !handedOn, len(out.Moved) == 0, p.DryRun:
	case len(out.Findings) > 0:
		p.mu.Lock()
		p.found = append(p.found, o)
		p.mu.Unlock()
	default:
		updated = p.record(ctx, o)
	}
	p.report.Count(1, len(books.View.Refunds), 0, updated)
}

// recordFound records the statuses that gave rise to findings, after the report
// has those: whoever compares next finds them no more.
func (p *pass) recordFound(ctx context.Context) {
	if len(p.found) == 0 {
		return
	}
	if err := p.report.Keep(ctx); err != nil {
		p.incomplete(ctx, err, reconcile.ReasonNotKept)
		return
	}
	for _, o := range p.found {
		p.report.Count(0, 0, 0, p.record(ctx, o))
	}
}

// send hands a finding to its case, and reports whether it is there.
func (p *pass) send(ctx context.Context, f *amendsv1.EffectFinding) bool {
	if p.DryRun || p.sent.Has(f.GetFindingId()) {
		return !p.DryRun
	}
	if p.sends.Add(1) > maxSends {
		p.report.Incomplete(reconcile.ReasonTooMany)
		return false
	}
	caseID := reconcile.CaseOf(f)
	_, err := p.Bus.Send(ctx, subject.Result(string(roles.RefundExecutor), p.Tenant, caseID), reconcile.Envelope(f, caseID, roles.RefundExecutor), f)
	if err != nil {
		p.incomplete(ctx, err, reconcile.ReasonNotSent)
		return false
	}
	p.sent.Add(f.GetFindingId())
	p.findings.Add(ctx, 1, metric.WithAttributes(attribute.String("code", f.GetCode())))
	p.Log.WarnContext(ctx, "records of money disagree", slog.String("tenant", p.Tenant), slog.String("order", f.GetOrderId()), slog.String("code", f.GetCode()),
		slog.String("refund", f.GetRefundId()), slog.String("case", caseID), slog.String("finding", f.GetFindingId()))
	return true
}

// record writes the statuses that moved on. A lost race is left to the next
// run: whoever won may have written them.
func (p *pass) record(ctx context.Context, o observed) int {
	n, err := ledger.Observe(o.books.Entry, o.books.View, nil, p.Now())
	if err == nil && n != nil {
		_, err = p.Store.SaveEntry(ctx, n, o.seq)
	}
	if err != nil {
		p.Log.InfoContext(ctx, "status not recorded", slog.String("tenant", p.Tenant), slog.String("order", o.books.OrderID), slog.String("error", err.Error()))
		return 0
	}
	return len(o.moved)
}
