package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// tallyWorkers bounds how many suspicions are looked into side by side.
const tallyWorkers = 4

// comparer compares the effect ledger with the cases (MONEY-3). It keeps what
// it took in of both streams, so that a run reads only what is new; before it
// says that something disagrees it reads both sides at their leaders again.
type comparer struct {
	*orchestrator
	server *reconcile.Server
	sent   reconcile.Sent
	// books are by tenant; only runs use them, and one runs at a time.
	books map[string]*books
	// brokers counts the changes of brokers.
	brokers atomic.Uint64
}

// compareRecords carries out reconciliations until ctx ends.
func (o *orchestrator) compareRecords(ctx context.Context) error {
	c := &comparer{orchestrator: o, books: map[string]*books{}}
	c.server = reconcile.New(reconcile.Options{
		Config: o.cfg.Reconcile, Service: roles.Orchestrator, Bus: o.conn, Now: o.now, Log: o.log, Compare: c.compare,
		Time: func(ctx context.Context) (time.Time, error) { return o.conn.Time(ctx, roles.ConsumerDue) },
	})
	o.conn.OnServerChange(func() {
		c.brokers.Add(1)
		c.sent.Forget()
		c.server.Rewind()
	})
	return c.server.Serve(ctx)
}

func (c *comparer) compare(ctx context.Context, run reconcile.Run, r *reconcile.Report) {
	since := run.At.Add(-c.cfg.Reconcile.Window)
	b, err := c.booksOf(ctx, run.Tenant, since)
	if err != nil {
		c.misses(ctx, run, r, reconcile.ReasonLedger, err)
		return
	}
	// The ledger first: what a case says of an effect is then newer, never older.
	if err := c.takeLedger(ctx, b); err != nil {
		c.misses(ctx, run, r, reasonOf(err, reconcile.ReasonLedger), err)
	}
	if err := c.takeCases(ctx, b); err != nil {
		c.misses(ctx, run, r, reasonOf(err, reconcile.ReasonCases), err)
	}
	b.forget(since)
	if len(b.unreadable) > 0 {
		c.misses(ctx, run, r, reconcile.ReasonUnreadable, fmt.Errorf("%d messages cannot be read", len(b.unreadable)))
	}
	r.Count(len(b.ledger), b.refunds(), len(b.cases), 0)
	t := c.tally(run)
	t.Case = func(id string) *casework.Account { return b.cases[id] }
	t.Ledger = func(order string) casework.Entry { return b.ledger[order] }
	todo, all := b.next(suspicions(t, b), c.cfg.Reconcile.MaxOrders)
	if !all {
		r.Incomplete(reconcile.ReasonTooMany)
	}
	p := &tallyRun{comparer: c, Run: run, report: r}
	var g errgroup.Group // without a shared end: one that fails holds up no other
	g.SetLimit(tallyWorkers)
	for i, f := range todo {
		if ctx.Err() != nil { // the time is up
			b.from = todo[max(i-tallyWorkers, 0)].GetFindingId()
			break
		}
		g.Go(func() error { return p.lookInto(ctx, f) })
	}
	if err := g.Wait(); err != nil {
		c.misses(ctx, run, r, reconcile.ReasonCases, err)
	}
}

func (c *comparer) tally(run reconcile.Run) casework.Tally {
	return casework.Tally{Tenant: run.Tenant, At: run.At, Grace: c.cfg.Reconcile.Grace, Left: c.cfg.Reconcile.InDoubt}
}

func (c *comparer) misses(ctx context.Context, run reconcile.Run, r *reconcile.Report, reason string, err error) {
	if ctx.Err() != nil {
		reason = reconcile.ReasonTimeout // whatever came of it
	}
	r.Incomplete(reason)
	c.log.WarnContext(ctx, "reconciliation misses something", slog.String("tenant", run.Tenant), slog.String("run", run.ID), slog.String("reason", reason), slog.String("error", err.Error()))
}

// suspicions are the findings of what was taken in, each once.
func suspicions(t casework.Tally, b *books) []*amendsv1.EffectFinding {
	found := map[string]*amendsv1.EffectFinding{}
	for _, e := range b.ledger {
		for _, f := range t.Entry(e) {
			found[f.GetFindingId()] = f
		}
	}
	for _, a := range b.cases {
		for _, f := range t.Account(a) {
			found[f.GetFindingId()] = f
		}
	}
	out := make([]*amendsv1.EffectFinding, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}
	return out
}

// tallyRun is one run that looks into what it suspects.
type tallyRun struct {
	*comparer
	reconcile.Run
	report *reconcile.Report
	raised atomic.Int64
}

// lookInto reads both sides of a suspicion as they are now, and raises what
// still disagrees.
func (p *tallyRun) lookInto(ctx context.Context, suspected *amendsv1.EffectFinding) error {
	e, err := p.entryNow(ctx, p.Tenant, suspected.GetOrderId())
	if err != nil {
		return err
	}
	cases := map[string]*casework.Account{suspected.GetAboutCaseId(): nil}
	for _, in := range e.GetIntents() {
		cases[in.GetCaseId()] = nil
	}
	for id := range cases {
		if cases[id], err = p.accountNow(ctx, p.Tenant, id); err != nil {
			return err
		}
	}
	entries := map[string]casework.Entry{suspected.GetOrderId(): e}
	for _, told := range cases[suspected.GetAboutCaseId()].Refunds() {
		if _, read := entries[told.OrderID]; read {
			continue
		}
		if entries[told.OrderID], err = p.entryNow(ctx, p.Tenant, told.OrderID); err != nil {
			return err
		}
	}
	t := p.tally(p.Run)
	t.Case = func(id string) *casework.Account { return cases[id] }
	t.Ledger = func(order string) casework.Entry { return entries[order] }
	now := t.Entry(e)
	if a := cases[suspected.GetAboutCaseId()]; a != nil {
		now = append(now, t.Account(a)...)
	}
	for _, f := range now {
		p.report.Found(f)
		p.handOn(ctx, f)
	}
	return nil
}

// handOn gives a finding to its case, unless this process did.
func (p *tallyRun) handOn(ctx context.Context, f *amendsv1.EffectFinding) {
	switch {
	case p.DryRun || p.sent.Has(f.GetFindingId()):
	case p.raised.Add(1) > reconcile.MaxFindings:
		p.report.Incomplete(reconcile.ReasonTooMany)
	default:
		if err := p.raise(ctx, f); err != nil {
			p.misses(ctx, p.Run, p.report, reconcile.ReasonNotSent, err)
			return
		}
		p.sent.Add(f.GetFindingId())
	}
}

// raise applies a finding to its case, as an input like any other: in the log,
// under an id that follows from the finding.
func (c *comparer) raise(ctx context.Context, f *amendsv1.EffectFinding) error {
	caseID := reconcile.CaseOf(f)
	env, payload := reconcile.Envelope(f, caseID, roles.Orchestrator), &amendsv1.CaseFinding{Finding: f}
	data, err := envelope.Seal(env, payload)
	if err != nil {
		return fmt.Errorf("raise finding %s: %w", f.GetFindingId(), err)
	}
	at := subject.Due(f.GetTenant(), caseID)
	parts, err := subject.Parse(at)
	if err != nil {
		return fmt.Errorf("raise finding %s: %w", f.GetFindingId(), err)
	}
	ctx, cancel := context.WithTimeout(c.watched(ctx, env), inputTimeout)
	defer cancel()
	now, err := c.conn.Time(ctx, roles.ConsumerDue)
	if err != nil {
		return fmt.Errorf("raise finding %s: %w", f.GetFindingId(), err)
	}
	m := &bus.Message{
		Envelope: env, Payload: payload, Parts: parts, Stream: roles.StreamEffects, Delivered: 1,
		Stored: bus.Stored{Subject: at, Time: now, Data: data},
	}
	if err := c.apply(ctx, m, place{id: caseID}); err != nil {
		return fmt.Errorf("raise finding %s: %w", f.GetFindingId(), err)
	}
	c.log.WarnContext(ctx, "records of money disagree", slog.String("tenant", f.GetTenant()), slog.String("order", f.GetOrderId()), slog.String("code", f.GetCode()),
		slog.String("refund", f.GetRefundId()), slog.String("case", caseID), slog.String("finding", f.GetFindingId()))
	return nil
}

// entryNow reads an order's ledger entry at the leader; without one when there
// is none.
func (c *comparer) entryNow(ctx context.Context, tenant, order string) (casework.Entry, error) {
	m, err := c.conn.Last(ctx, roles.StreamEffects, subject.Effect(tenant, order))
	if errors.Is(err, bus.ErrNotFound) {
		return casework.Entry{}, nil
	}
	if err != nil {
		return casework.Entry{}, fmt.Errorf("ledger of order %s: %w", order, err)
	}
	return entryOf(m)
}

func entryOf(m bus.Stored) (casework.Entry, error) {
	e := new(amendsv1.EffectEntry)
	if err := proto.Unmarshal(m.Data, e); err != nil {
		return casework.Entry{}, fmt.Errorf("decode %s: %w", m.Subject, err)
	}
	return casework.Entry{EffectEntry: e, At: m.Time}, nil
}
