package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// store keeps case records with compare-and-set; package casestore has the
// implementations and their conformance suite.
type store interface {
	Load(ctx context.Context, tenant, caseID string) (casestore.Snapshot, error)
	Commit(ctx context.Context, c *amendsv1.CaseCommit, expect uint64) (uint64, error)
}

// owners answers whose order it is.
type owners interface {
	VerifyOwner(ctx context.Context, tenant, customer, order string) (bool, error)
}

// orchestrator holds what the handlers share.
type orchestrator struct {
	cfg    Config
	lim    casework.Limits
	log    *slog.Logger
	conn   *bus.Conn
	store  store
	owners owners
	// registry gives the registry of people as its file is now.
	registry func() (*approval.Registry, error)
	now      func() time.Time
	cache    *cache
	locks    *locks
	views    *views
	held     *held
	// rewalk asks the sweeper to walk the commits from a sequence on again.
	rewalk  chan uint64
	metrics metrics
	tell    func(ctx context.Context, p Point, in *amendsv1.Envelope)
}

type metrics struct {
	commits   metric.Int64Counter
	conflicts metric.Int64Counter
	refused   metric.Int64Counter
	resent    metric.Int64Counter
}

// Deps are what the service is given.
type Deps struct {
	Bus   *bus.Conn
	Log   *slog.Logger
	Meter metric.Meter
	// Now is the process's clock; it decides nothing, it only says when to look
	// for overdue cases and spares sends that would be too late. Nil takes the
	// machine's.
	Now func() time.Time
	// Reached lets a test stand at the points of an input's handling.
	Reached func(ctx context.Context, p Point, in *amendsv1.Envelope)
}

// Run serves until ctx ends; in-flight inputs are finished or given back.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	client, err := cfg.Payments.Open(deps.Log)
	if err != nil {
		return err
	}
	defer client.Close()
	file, err := approval.NewFile(func() ([]byte, error) { return boot.ReadFile(cfg.ApproverRegistry, approval.MaxRegistry) })
	if err != nil {
		return fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	o, err := build(cfg, deps, casestore.NewJetStream(deps.Bus), client, current(file, deps.Log))
	if err != nil {
		return err
	}
	return o.run(ctx)
}

// current gives the registry as its file is now. While that is none no signature
// is judged: the decisions wait.
func current(file *approval.File, log *slog.Logger) func() (*approval.Registry, error) {
	return func() (*approval.Registry, error) {
		r, changed, err := file.Load()
		switch {
		case err != nil:
			log.Error("approver registry not usable, no decision can be judged", slog.Any("error", err))
		case changed:
			log.Info("approver registry changed", slog.String("version", r.Version), slog.Int("approvers", len(r.Approvers)))
		}
		return r, err
	}
}

func build(cfg Config, deps Deps, st store, own owners, registry func() (*approval.Registry, error)) (*orchestrator, error) {
	lim := casework.DefaultLimits()
	lim.ApprovalExpiry = cfg.ApprovalExpiry
	if deps.Now == nil {
		deps.Now = time.Now
	}
	o := &orchestrator{
		cfg: cfg, lim: lim, log: deps.Log, conn: deps.Bus, store: st, owners: own, registry: registry, now: deps.Now,
		cache: newCache(), locks: newLocks(), views: newViews(), held: newHeld(), rewalk: make(chan uint64, 1), tell: deps.Reached,
	}
	for _, c := range []struct {
		into *metric.Int64Counter
		name string
		what string
	}{
		{&o.metrics.commits, "amends_case_commits_total", "Commits of case records, by the row followed last."},
		{&o.metrics.conflicts, "amends_case_conflicts_total", "Commits that lost the compare-and-set."},
		{&o.metrics.refused, "amends_case_refusals_total", "Inputs recorded as refused, by reason."},
		{&o.metrics.resent, "amends_case_resends_total", "Records whose outgoing messages were sent again, by cause."},
	} {
		counter, err := deps.Meter.Int64Counter(c.name, metric.WithDescription(c.what))
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", c.name, err)
		}
		*c.into = counter
	}
	return o, nil
}

// inputTimeout bounds the handling of one input: its look-ups, a commit decided
// again after lost races, and its sends.
const inputTimeout = 10 * time.Second

// run drains results and decisions besides posts, each on its own consumer, so
// that started cases never wait behind new ones.
func (o *orchestrator) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	var acked func(context.Context, *bus.Message)
	if o.tell != nil {
		acked = func(ctx context.Context, m *bus.Message) { o.tell(ctx, Acknowledged, m.Envelope) }
	}
	for consumer, workers := range map[string]int{
		roles.ConsumerResults: o.cfg.Workers, roles.ConsumerDecisions: o.cfg.Workers, roles.ConsumerPosts: o.cfg.Workers, roles.ConsumerDue: max(o.cfg.Workers/8, 1),
	} {
		g.Go(func() error {
			return o.conn.Consume(ctx, consumer, o.handle, bus.ConsumeOptions{Workers: workers, Timeout: inputTimeout, OnAcked: acked})
		})
	}
	g.Go(func() error { return o.sweep(ctx) })
	g.Go(func() error { return o.watchStops(ctx) })
	g.Go(func() error { return o.compareRecords(ctx) })
	return g.Wait()
}
