package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/readmodel"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Deps are the console's collaborators. Only Bus must be given.
type Deps struct {
	Bus   *bus.Conn
	Log   *slog.Logger
	Meter metric.Meter
	Now   func() time.Time
	// Ready is told the bound address once requests are served.
	Ready func(addr string)
}

// broker is what the console needs of the bus; tests make it fail.
type broker interface {
	Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error)
	Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error)
	LastDirect(ctx context.Context, stream, subj string) (bus.Stored, error)
}

type console struct {
	bus    broker
	queues queues
	log    *slog.Logger
	now    func() time.Time
	tokens *edge.Tokens[*Staff]
}

// Run serves the console until ctx ends; then it drains.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	redis, err := cfg.Redis.Open(deps.Log, "amends-console", listTimeout)
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }() // it holds nothing that could be lost
	h, err := build(cfg, deps, deps.Bus, readmodel.New(redis, readmodel.Prefix))
	if err != nil {
		return err
	}
	log := deps.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	err = edge.Serve(ctx, edge.Endpoint{Listen: cfg.Listen, TLS: cfg.TLS}, h, log, deps.Ready)
	if errors.Is(err, edge.ErrTLS) {
		err = fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	return err
}

func build(cfg Config, deps Deps, b broker, q queues) (http.Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	tokens, err := cfg.tokens()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Meter == nil {
		deps.Meter = metricnoop.NewMeterProvider().Meter("console")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	c := &console{bus: b, queues: q, log: deps.Log, now: deps.Now, tokens: tokens}
	return edge.Observe(c.routes(), deps.Log, deps.Meter, deps.Now)
}

func (c *console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/cases/{tenant}/{case}", c.api(c.showRecord))
	mux.Handle("GET /v1/cases/{tenant}/{case}/action", c.api(c.showAction))
	mux.Handle("POST /v1/cases/{tenant}/{case}/decisions", c.api(c.relayDecision))
	mux.Handle("GET /v1/cases/{tenant}/{case}/custody", c.api(c.showCustody))
	mux.Handle("POST /v1/cases/{tenant}/{case}/custody", c.api(c.relayCustody))
	mux.Handle("GET "+deskapi.QueuePath, edge.Handler(c.listQueue))
	mux.Handle(deskapi.QueuePath, edge.MethodNotAllowed("GET, HEAD"))
	mux.Handle("GET "+deskapi.StopsPath, edge.Handler(c.listStops))
	mux.Handle("POST "+deskapi.StopsPath, edge.Handler(c.changeStop))
	mux.Handle(deskapi.StopsPath, edge.MethodNotAllowed("GET, HEAD, POST"))
	mux.Handle("POST "+deskapi.ReconciliationsPath, edge.Handler(c.askToReconcile))
	mux.Handle(deskapi.ReconciliationsPath, edge.MethodNotAllowed("POST"))
	mux.Handle("GET "+deskapi.ReconciliationsPath+"/{tenant}/{run}", edge.Handler(c.showRun))
	mux.Handle(deskapi.ReconciliationsPath+"/{tenant}/{run}", edge.MethodNotAllowed("GET, HEAD"))
	mux.Handle("GET /cases/{tenant}/{case}", c.page())
	mux.Handle("/v1/cases/{tenant}/{case}", edge.MethodNotAllowed("GET, HEAD"))
	mux.Handle("/v1/cases/{tenant}/{case}/action", edge.MethodNotAllowed("GET, HEAD"))
	mux.Handle("/v1/cases/{tenant}/{case}/decisions", edge.MethodNotAllowed("POST"))
	mux.Handle("/v1/cases/{tenant}/{case}/custody", edge.MethodNotAllowed("GET, HEAD, POST"))
	mux.Handle("/cases/{tenant}/{case}", edge.MethodNotAllowed("GET, HEAD"))
	mux.Handle("/", edge.NotFound)
	return mux
}

// request is an authenticated request about one case.
type request struct {
	*http.Request
	staff  *Staff
	tenant string
	caseID string
}

var (
	unauthenticated = deskapi.NewProblem(http.StatusUnauthorized, deskapi.CodeUnauthenticated, "send a valid staff token")
	unknownCase     = deskapi.NewProblem(http.StatusNotFound, deskapi.CodeNotFound, "no such case")
	unavailable     = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeUnavailable, "send the same request again").After(time.Second)
)

func (c *console) api(h func(http.ResponseWriter, request) *deskapi.Problem) http.Handler {
	return edge.Handler(func(w http.ResponseWriter, r *http.Request) *deskapi.Problem {
		return c.identify(w, r, edge.Bearer(r), "Bearer", h)
	})
}

// staff gives whose token it is.
func (c *console) staff(w http.ResponseWriter, token, challenge string) (*Staff, *deskapi.Problem) {
	staff, ok := c.tokens.Find(token)
	if !ok {
		w.Header().Set("WWW-Authenticate", challenge)
		return nil, unauthenticated
	}
	return staff, nil
}

// identify lets staff through to the cases of their tenants.
func (c *console) identify(w http.ResponseWriter, r *http.Request, token, challenge string, h func(http.ResponseWriter, request) *deskapi.Problem) *deskapi.Problem {
	staff, problem := c.staff(w, token, challenge)
	if problem != nil {
		return problem
	}
	req := request{Request: r, staff: staff, tenant: r.PathValue("tenant"), caseID: r.PathValue("case")}
	if !staff.sees(req.tenant) || ident.Token(req.caseID) != nil {
		return unknownCase
	}
	return h(w, req)
}
