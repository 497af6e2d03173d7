package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/gateway/deliveries"
)

const (
	// liveViews is what the gateway may listen to.
	liveViews = "live.view.*.*"
	// clientName is how Redis knows the gateway.
	clientName = "amends-gateway"
)

// Deps are the gateway's collaborators. Only Bus must be given.
type Deps struct {
	Bus    *bus.Conn
	Log    *slog.Logger
	Meter  metric.Meter
	Tracer trace.Tracer
	Now    func() time.Time
	// Ready is told the bound address once requests are served.
	Ready func(addr string)
	// Reached lets a test stand at the points of what is handed in.
	Reached func(ctx context.Context, p Point, env *amendsv1.Envelope)
}

// broker is what the gateway needs of the bus; tests make it fail.
type broker interface {
	Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error)
	LastDirect(ctx context.Context, stream, subj string) (bus.Stored, error)
	Last(ctx context.Context, stream, subj string) (bus.Stored, error)
	Live(ctx context.Context, pattern string, fn func(subj string, data []byte)) (stop func(), err error)
	OnServerChange(fn func())
	Backlog(ctx context.Context, consumer string) (bus.Backlog, error)
	ConsumeRaw(ctx context.Context, consumer string, h func(context.Context, *bus.Raw) error, o bus.ConsumeOptions) error
	NextAfter(ctx context.Context, stream, filter string, seq uint64) (bus.Stored, error)
}

type gateway struct {
	bus     broker
	log     *slog.Logger
	now     func() time.Time
	tracer  trace.Tracer
	metrics *metrics
	keys    *edge.Tokens[*Channel]
	logins  []*login
	// credentials counts what they came to.
	credentials *credentialMetrics
	views       *views
	limits      *limiter
	posts       flow
	reads       flow
	// pressure closes the door to new cases.
	pressure *pressure
	// model is for lists; projection fills it.
	model      *readmodel.Model
	projection *projector
	api        []byte // openapi.json
	// provider is nil where no events of the provider are taken.
	provider *hookSource
	// porch is where those wait that nobody has verified.
	porch porch
	// spreadBefore are the events that need not be stored again.
	spreadBefore *spreadEvents
	// requests and streams bound what is open at once.
	requests gate
	streams  gate
	tell     func(ctx context.Context, p Point, env *amendsv1.Envelope)
	// stopping ends the streams when the process is to end.
	stopping <-chan struct{}
}

// Run serves the gateway until ctx ends; then it drains.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	deps = deps.withDefaults()
	counts, err := cfg.Redis.Open(deps.Log, clientName, cfg.Limits.RedisTimeout)
	if err != nil {
		return err
	}
	lists, err := cfg.Redis.Open(deps.Log, clientName, listTimeout)
	if err != nil {
		return err
	}
	defer func() { _, _ = counts.Close(), lists.Close() }() // they hold nothing that could be lost
	g, h, err := build(ctx, cfg, deps, deps.Bus, redis_rate.NewLimiter(counts), readmodel.New(lists, readmodel.Prefix))
	if err != nil {
		return err
	}
	if g.provider, err = cfg.Provider.open(deps.Log); err != nil {
		return err
	}
	endpoints, err := cfg.endpoints(deps.Log)
	if err != nil {
		return err
	}
	outbox, err := deliveries.New(endpoints, deliveries.Deps{Bus: deps.Bus, Log: deps.Log, Meter: deps.Meter, Now: deps.Now})
	if err != nil {
		return err
	}
	stop, err := g.bus.Live(ctx, liveViews, g.views.receive)
	if err != nil {
		return fmt.Errorf("listen to views: %w", err)
	}
	defer stop()
	g.bus.OnServerChange(g.views.reread)
	beside, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	ended := make(chan error, 1)
	running.Go(func() {
		err := outbox.Run(beside)
		if err != nil {
			end() // a gateway that delivers nothing is to be started anew
		}
		ended <- err
	})
	running.Go(func() { g.pressure.run(beside) })
	running.Go(func() { g.projection.run(beside) })
	for _, l := range g.logins {
		// Their keys are read ahead of the first token; an issuer that is away keeps
		// nobody else waiting.
		running.Go(func() { l.verifier.Warm(beside) })
	}
	err = edge.Serve(beside, edge.Endpoint{Listen: cfg.Listen, TLS: cfg.TLS}, h, g.log, deps.Ready)
	if errors.Is(err, edge.ErrTLS) {
		err = fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	end()
	return errors.Join(err, <-ended)
}

func (d Deps) withDefaults() Deps {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Meter == nil {
		d.Meter = metricnoop.NewMeterProvider().Meter("gateway")
	}
	if d.Tracer == nil {
		d.Tracer = tracenoop.NewTracerProvider().Tracer("gateway")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

func build(ctx context.Context, cfg Config, deps Deps, b broker, counts *redis_rate.Limiter, model *readmodel.Model) (*gateway, http.Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	keys, err := cfg.keys()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	g := &gateway{
		bus: b, log: deps.Log, now: deps.Now, tracer: deps.Tracer, keys: keys,
		views: newViews(b, deps.Log), tell: deps.Reached, stopping: ctx.Done(),
		posts:    newFlow("posts", cfg.Limits.CustomerPosts, cfg.Limits.Posts, cfg.Limits.TenantPosts),
		reads:    newFlow("reads", cfg.Limits.CustomerReads, cfg.Limits.Reads, cfg.Limits.TenantReads),
		pressure: &pressure{bus: b, consumers: watches(), limit: uint64(cfg.Limits.CasesInFlight), now: deps.Now, log: deps.Log},
		model:    model, projection: &projector{bus: b, model: model, log: deps.Log},
		porch: newPorch(), spreadBefore: newSpreadEvents(), requests: gate{limit: int64(cfg.Limits.InFlight)}, streams: gate{limit: int64(cfg.Limits.Streams)},
	}
	if g.metrics, err = newMetrics(deps.Meter, gauges{
		streams:     g.streams.inside.Load,
		inFlight:    func() int64 { return int64(g.pressure.current()) },
		unprojected: func() int64 { return int64(g.projection.waiting.Load()) },
	}); err != nil {
		return nil, nil, err
	}
	if g.api, err = openAPIJSON(); err != nil {
		return nil, nil, err
	}
	if g.credentials, err = newCredentialMetrics(deps.Meter, deps.Log); err != nil {
		return nil, nil, err
	}
	if g.logins, err = newLogins(cfg, deps, g.credentials); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	g.limits = &limiter{patience: cfg.Limits.RedisTimeout, redis: counts, now: deps.Now, log: deps.Log, metrics: g.metrics}
	h, err := edge.Observe(route(g.operations()), deps.Log, deps.Meter, deps.Now)
	if err != nil {
		return nil, nil, err
	}
	return g, h, nil
}

// watches are the consumers whose backlog says how busy the desk is.
func watches() []string {
	role, _ := roles.Desk().Role(roles.Gateway)
	return role.Watches
}

var overloaded = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeOverloaded, "too many requests in flight").After(time.Second)

// handler answers an admitted request or says what went wrong.
type handler func(http.ResponseWriter, *http.Request, caller) *deskapi.Problem

// admit lets a request in: credential, room, rate limit.
func (g *gateway) admit(f flow, room *gate, h handler) http.Handler {
	return edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		c, problem := g.identify(w, r)
		if problem != nil {
			return problem
		}
		if !room.enter() {
			return overloaded
		}
		defer room.leave()
		if problem := f.pass(r.Context(), g.limits, c); problem != nil {
			return problem
		}
		return h(w, r, c)
	})
}
