package executor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/internal/refunds"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/sweep"
)

// Deps are the executor's collaborators; all but Bus may be left out.
type Deps struct {
	Bus   *bus.Conn
	Log   *slog.Logger
	Meter metric.Meter
	// Now is the executor's clock: it dates intents and outcomes, and judges
	// approvals when an intent is written.
	Now func() time.Time
	// Reached lets a test stand between two steps of the refund with a key, or of
	// its action where the key is the first one's; TaskOf gives the task. An error
	// leaves the task there as a crash would: nothing more is written and nothing
	// answered. Inside a send, and after the acknowledgement, it changes nothing.
	Reached func(ctx context.Context, s Step, key string) error
}

// records is what the executor needs of the bus.
type records interface {
	effectstore.Bus
	Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error)
}

// parts are what the executor's work on a task rests on. Nothing in them is the
// bus, so a task can be worked on without one.
type parts struct {
	store     effectstore.Store
	provider  provider.Provider
	approvers func() (*approval.Registry, error)
	now       func() time.Time
	// wait passes time between two tries.
	wait func(ctx context.Context, d time.Duration) error
	// both does two things at once, and returns when both are done.
	both    func(a, b func())
	reached func(ctx context.Context, s Step, key string) error
	log     *slog.Logger
	metrics metrics
}

type executor struct {
	parts
	// watched: somebody stands at the places.
	watched bool
	cfg     Config
	policy  ledger.Policy
	locks   locks
	// bus carries the answers.
	bus records
}

// Run executes tasks until ctx ends.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	return runThrough(ctx, cfg, deps, deps.Bus)
}

func runThrough(ctx context.Context, cfg Config, deps Deps, b records) error {
	p, adapter, err := open(cfg, deps, b)
	if err != nil {
		return err
	}
	defer adapter.Close()
	x := assemble(cfg, p)
	x.bus = b
	compare, err := x.sweeps(deps, adapter)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return x.run(ctx, deps.Bus) })
	g.Go(func() error { return compare.Serve(ctx) })
	return g.Wait()
}

// sweeps gives the comparison of the provider with the ledger, which reads and
// writes beside the tasks.
func (x *executor) sweeps(deps Deps, adapter *refunds.Adapter) (*sweep.Sweep, error) {
	meter := deps.Meter
	if meter == nil {
		meter = noop.NewMeterProvider().Meter("executor")
	}
	s, err := sweep.New(x.cfg.Reconcile, sweep.Deps{
		Bus: deps.Bus, Store: effectstore.NewJetStream(deps.Bus), Provider: adapter, Now: x.now, Log: x.log, Meter: meter,
	})
	if err != nil {
		return nil, err
	}
	deps.Bus.OnServerChange(s.Forget)
	return s, nil
}

func (x *executor) run(ctx context.Context, conn *bus.Conn) error {
	// Long enough for every call of a task to use its whole time.
	timeout := x.cfg.CallWindow + 6*x.cfg.Payments.Timeout
	o := bus.ConsumeOptions{Workers: x.cfg.Workers, Timeout: timeout, OnReject: x.answerRejected}
	if x.watched {
		o.OnAcked = func(ctx context.Context, m *bus.Message) {
			if t, _, err := read(m); err == nil {
				_ = x.reached(withTask(ctx, m.Envelope), Acknowledged, t.key()) // it is over
			}
		}
	}
	err := conn.Consume(ctx, roles.TaskConsumer(roles.RefundExecutor), x.handle, o)
	if err != nil {
		return fmt.Errorf("consume tasks: %w", err)
	}
	return nil
}

// assemble makes an executor of its parts, with defaults for those that may be
// left out: log, metrics, the clock, the wait and the places to stand at.
func assemble(cfg Config, p parts) *executor {
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.now == nil {
		p.now = time.Now
	}
	if p.wait == nil {
		p.wait = pause
	}
	if p.both == nil {
		p.both = atOnce
	}
	watched := p.reached != nil
	if !watched {
		p.reached = func(context.Context, Step, string) error { return nil }
	}
	if p.metrics.results == nil {
		p.metrics, _ = newMetrics(noop.NewMeterProvider().Meter("executor")) // a meter that keeps nothing cannot fail
	}
	return &executor{parts: p, watched: watched, cfg: cfg, policy: cfg.policy()}
}

// open gives the parts of a running service.
func open(cfg Config, deps Deps, b records) (parts, *refunds.Adapter, error) {
	p := parts{store: effectstore.NewJetStream(b), now: deps.Now, reached: deps.Reached, log: deps.Log}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	meter := deps.Meter
	if meter == nil {
		meter = noop.NewMeterProvider().Meter("executor")
	}
	var err error
	if p.metrics, err = newMetrics(meter); err != nil {
		return parts{}, nil, err
	}
	file, err := approval.NewFile(func() ([]byte, error) { return boot.ReadFile(cfg.ApproverRegistry, approval.MaxRegistry) })
	if err != nil {
		return parts{}, nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	p.approvers = p.current(file)
	key, err := boot.ReadSecret(cfg.Payments.KeyFile, p.log)
	if err != nil {
		return parts{}, nil, err
	}
	adapter, err := refunds.Open(refunds.Config{
		URL: cfg.Payments.URL, Key: string(key), Timeout: cfg.Payments.Timeout, KeyWindow: cfg.Payments.KeyWindow, Now: deps.Now,
	})
	if err != nil {
		return parts{}, nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	p.provider = adapter
	return p, adapter, nil
}

// current gives the registry as its file is now. While that is none nothing is
// paid and nothing settled: the tasks wait.
func (p parts) current(file *approval.File) func() (*approval.Registry, error) {
	log, failures := p.log, p.metrics.registry
	return func() (*approval.Registry, error) {
		r, changed, err := file.Load()
		switch {
		case err != nil:
			failures.Add(context.Background(), 1)
			log.Error("approver registry not usable, nothing can be approved", slog.Any("error", err))
		case changed:
			log.Info("approver registry changed", slog.String("version", r.Version), slog.Int("approvers", len(r.Approvers)))
		}
		return r, err
	}
}

func atOnce(a, b func()) {
	var wg sync.WaitGroup
	wg.Go(a)
	b()
	wg.Wait()
}

// pause passes real time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
