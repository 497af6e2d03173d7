package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
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
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// liveViews is what the gateway may listen to.
const liveViews = "live.view.*.*"

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
	Live(ctx context.Context, pattern string, fn func(subj string, data []byte)) (stop func(), err error)
	OnServerChange(fn func())
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
	posts       map[*Channel]*bucket
	reads       map[*Channel]*bucket
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
	var password string
	if cfg.Redis.PasswordFile != "" {
		secret, err := boot.ReadSecret(cfg.Redis.PasswordFile, deps.Log)
		if err != nil {
			return err
		}
		password = string(secret)
	}
	client := newRedis(cfg.Redis, password)
	defer func() { _ = client.Close() }() // it holds nothing that could be lost
	g, h, err := build(ctx, cfg, deps, deps.Bus, redis_rate.NewLimiter(client))
	if err != nil {
		return err
	}
	defer g.warm(ctx)()
	stop, err := g.bus.Live(ctx, liveViews, g.views.receive)
	if err != nil {
		return fmt.Errorf("listen to views: %w", err)
	}
	defer stop()
	g.bus.OnServerChange(g.views.reread)
	err = edge.Serve(ctx, edge.Endpoint{Listen: cfg.Listen, TLS: cfg.TLS}, h, g.log, deps.Ready)
	if errors.Is(err, edge.ErrTLS) {
		err = fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	return err
}

// warm reads the issuers' keys ahead of the first token. An issuer that is away
// keeps nobody else's requests waiting.
func (g *gateway) warm(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var warming sync.WaitGroup
	for _, l := range g.logins {
		warming.Go(func() { l.verifier.Warm(ctx) })
	}
	return func() {
		cancel()
		warming.Wait()
	}
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

func build(ctx context.Context, cfg Config, deps Deps, b broker, counts *redis_rate.Limiter) (*gateway, http.Handler, error) {
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
		posts: map[*Channel]*bucket{}, reads: map[*Channel]*bucket{},
		requests: gate{limit: int64(cfg.Limits.InFlight)}, streams: gate{limit: int64(cfg.Limits.Streams)},
	}
	if g.metrics, err = newMetrics(deps.Meter, &g.streams); err != nil {
		return nil, nil, err
	}
	if g.credentials, err = newCredentialMetrics(deps.Meter, deps.Log); err != nil {
		return nil, nil, err
	}
	if g.logins, err = newLogins(cfg, deps, g.credentials); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	g.limits = &limiter{redis: counts, now: deps.Now, log: deps.Log, metrics: g.metrics}
	shared := map[string]*bucket{}
	bucketOf := func(flow string, ch *Channel, r Rate) *bucket {
		key := "gateway:" + flow + ":" + ch.Tenant + ":" + ch.Name
		if shared[key] == nil {
			shared[key] = newBucket(key, r)
		}
		return shared[key]
	}
	for _, ch := range g.channels(cfg) {
		g.posts[ch] = bucketOf("posts", ch, cfg.Limits.Posts)
		g.reads[ch] = bucketOf("reads", ch, cfg.Limits.Reads)
	}
	h, err := edge.Observe(g.routes(), deps.Log, deps.Meter, deps.Now)
	if err != nil {
		return nil, nil, err
	}
	return g, h, nil
}

// channels gives every channel that a caller may come by, in each tenant.
func (g *gateway) channels(cfg Config) []*Channel {
	var out []*Channel
	for i := range cfg.Channels {
		if cfg.Channels[i].OIDC == nil {
			out = append(out, &cfg.Channels[i])
		}
	}
	for _, l := range g.logins {
		out = slices.AppendSeq(out, maps.Values(l.tenants))
	}
	return out
}

func (g *gateway) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/cases", g.admit(g.posts, &g.requests, g.openCase))
	mux.Handle("GET /v1/cases/{id}", g.admit(g.reads, &g.requests, g.showCase))
	mux.Handle("GET /v1/cases/{id}/events", g.admit(g.reads, &g.streams, g.followCase))
	mux.Handle("POST /v1/cases/{id}/messages", g.admit(g.posts, &g.requests, g.addMessage))
	mux.Handle("POST /v1/cases/{id}/cancel", g.admit(g.posts, &g.requests, g.cancelCase))
	mux.Handle("/v1/cases", edge.MethodNotAllowed("POST"))
	mux.Handle("/v1/cases/{id}", edge.MethodNotAllowed("GET, HEAD"))
	mux.Handle("/v1/cases/{id}/events", edge.MethodNotAllowed("GET"))
	mux.Handle("/v1/cases/{id}/messages", edge.MethodNotAllowed("POST"))
	mux.Handle("/v1/cases/{id}/cancel", edge.MethodNotAllowed("POST"))
	mux.Handle("/", edge.NotFound)
	return mux
}

var overloaded = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeOverloaded, "too many requests in flight").After(time.Second)

// admit lets a request in: credential, room, rate limit.
func (g *gateway) admit(flow map[*Channel]*bucket, room *gate, h func(http.ResponseWriter, *http.Request, caller) *deskapi.Problem) http.Handler {
	return edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		c, problem := g.identify(w, r)
		if problem != nil {
			return problem
		}
		if !room.enter() {
			return overloaded
		}
		defer room.leave()
		if ok, after := g.limits.allow(r.Context(), flow[c.channel]); !ok {
			return deskapi.NewProblem(http.StatusTooManyRequests, deskapi.CodeRateLimited, "the channel is over its rate limit").After(after)
		}
		return h(w, r, c)
	})
}
