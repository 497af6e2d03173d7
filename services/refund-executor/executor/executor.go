package executor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/internal/refunds"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// Deps are the executor's collaborators; all but Bus may be left out.
type Deps struct {
	Bus   *bus.Conn
	Log   *slog.Logger
	Meter metric.Meter
	// Now is the executor's clock: it dates intents and outcomes, and judges
	// approvals when an intent is written.
	Now func() time.Time
	// Reached lets a test stand between two steps. An error leaves the task
	// there as a crash would: nothing more is written and nothing answered.
	Reached func(ctx context.Context, s Step, key string) error
}

// Step is a place between two steps of one refund.
type Step string

// The places a test can stand at.
const (
	IntentDurable  Step = "intent_durable"
	Called         Step = "called"
	OutcomeDurable Step = "outcome_durable"
)

// records is what the executor needs of the bus.
type records interface {
	Last(ctx context.Context, stream, subj string) (bus.Stored, error)
	NextAfter(ctx context.Context, stream, filter string, seq uint64) (bus.Stored, error)
	Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error)
	Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error)
}

type executor struct {
	cfg      Config
	policy   ledger.Policy
	registry *approval.Registry
	bus      records
	orders   *payments.Client
	refunds  *refunds.Client
	locks    locks
	log      *slog.Logger
	metrics  metrics
	now      func() time.Time
	reached  func(ctx context.Context, s Step, key string) error
}

// Run executes tasks until ctx ends.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	x, err := build(cfg, deps, deps.Bus)
	if err != nil {
		return err
	}
	defer x.close()
	return x.run(ctx, deps.Bus)
}

func (x *executor) run(ctx context.Context, conn *bus.Conn) error {
	// Long enough for every call of a task to use its whole time.
	timeout := x.cfg.CallWindow + 4*x.cfg.Payments.Timeout
	err := conn.Consume(ctx, roles.TaskConsumer(roles.RefundExecutor), x.handle,
		bus.ConsumeOptions{Workers: x.cfg.Workers, Timeout: timeout, OnReject: x.answerRejected})
	if err != nil {
		return fmt.Errorf("consume tasks: %w", err)
	}
	return nil
}

func build(cfg Config, deps Deps, b records) (*executor, error) {
	x := &executor{cfg: cfg, policy: cfg.policy(), bus: b, log: deps.Log, now: deps.Now, reached: deps.Reached}
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	if x.now == nil {
		x.now = time.Now
	}
	if x.reached == nil {
		x.reached = func(context.Context, Step, string) error { return nil }
	}
	meter := deps.Meter
	if meter == nil {
		meter = noop.NewMeterProvider().Meter("executor")
	}
	var err error
	if x.metrics, err = newMetrics(meter); err != nil {
		return nil, err
	}
	file, err := os.ReadFile(cfg.ApproverRegistry)
	if err != nil {
		return nil, fmt.Errorf("%w: approver registry: %w", boot.ErrConfig, err)
	}
	if x.registry, err = approval.ParseRegistry(file); err != nil {
		return nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	key, err := boot.ReadSecret(cfg.Payments.KeyFile, x.log)
	if err != nil {
		return nil, err
	}
	if x.orders, err = payments.New(payments.Config{URL: cfg.Payments.URL, Key: string(key), Timeout: cfg.Payments.Timeout}); err != nil {
		return nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	if x.refunds, err = refunds.New(refunds.Config{URL: cfg.Payments.URL, Key: string(key), Timeout: cfg.Payments.Timeout}); err != nil {
		return nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	return x, nil
}

func (x *executor) close() {
	x.orders.Close()
	x.refunds.Close()
}
