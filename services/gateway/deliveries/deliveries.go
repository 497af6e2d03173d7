package deliveries

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/webhook"
)

const (
	// maxAge is how old a reply may be when it is first seen.
	maxAge = 3 * 24 * time.Hour
	// perEndpoint bounds the attempts under way to one endpoint.
	perEndpoint = 4
	// maxTries bounds how often a lost race is run again.
	maxTries = 8
	// settleTimeout bounds how long an attempt's outcome may take to record.
	settleTimeout = 10 * time.Second
	// pause is how long after a fault of ours, broker away or view not there,
	// a delivery is looked at again; it is no attempt.
	pause = 5 * time.Second
)

// Endpoint is where one channel's replies go.
type Endpoint struct {
	Tenant, Channel string
	URL             string
	Secrets         webhook.Secrets
	// Private lets it be on any address, and plain http.
	Private bool
	// Since is when the endpoint came into force: replies sent before are not
	// delivered, and what was found wrong with it before does not count.
	Since time.Time
}

// Deps are the collaborators.
type Deps struct {
	Bus   *bus.Conn
	Log   *slog.Logger
	Meter metric.Meter
	Now   func() time.Time
}

// times are the waits, which tests shorten.
type times struct {
	follow  time.Duration // between looks at the log
	lease   time.Duration // of an attempt; longer than one can take
	probe   time.Duration // between probes of a disabled endpoint
	failing time.Duration // how long an endpoint must have failed to be disabled
	rewind  time.Duration // between walks of the views
	delay   func(id string, failed int) (time.Duration, bool)
}

func defaultTimes() times {
	return times{follow: 2 * time.Second, lease: 30 * time.Second, probe: time.Hour, failing: time.Hour, rewind: time.Minute, delay: webhook.Delay}
}

// failures is how many attempts in a row must fail to disable an endpoint.
const failures = 20

type place struct{ tenant, name string }

// Outbox delivers the replies of all channels that have an endpoint.
type Outbox struct {
	Deps
	times
	endpoints map[place]*endpoint
	metrics   *metrics
}

// New gives an outbox; an endpoint per channel at most.
func New(endpoints []Endpoint, deps Deps) (*Outbox, error) {
	o := &Outbox{Deps: deps, times: defaultTimes(), endpoints: map[place]*endpoint{}}
	for _, e := range endpoints {
		at := place{e.Tenant, e.Channel}
		if o.endpoints[at] != nil {
			return nil, fmt.Errorf("webhooks: channel %s of %s has two endpoints", e.Channel, e.Tenant)
		}
		o.endpoints[at] = newEndpoint(e, deps.Now)
	}
	var err error
	o.metrics, err = newMetrics(deps.Meter, o.endpoints)
	return o, err
}

// Run delivers until ctx ends; attempts under way are finished. It returns an
// error only when it cannot begin.
func (o *Outbox) Run(ctx context.Context) error {
	if len(o.endpoints) == 0 {
		return nil
	}
	f := newFollower(o)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		f.run(ctx)
		return nil
	})
	g.Go(func() error {
		return o.Bus.ConsumeRaw(ctx, roles.ConsumerReplies, o.take, bus.ConsumeOptions{Workers: 4})
	})
	for _, e := range o.endpoints {
		g.Go(func() error {
			defer e.client.Close()
			o.serve(ctx, e)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("deliver replies: %w", err)
	}
	return nil
}
