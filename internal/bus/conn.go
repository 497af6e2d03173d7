package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/amends-dev/amends/internal/roles"
)

const (
	defaultRequestTimeout = 2 * time.Second
	dialTimeout           = 2 * time.Second
	dialAttempts          = 10
	pingInterval          = 5 * time.Second
	pingsOut              = 2
)

// Config says which service connects, where and with what.
type Config struct {
	URL     string
	Service roles.Service
	// Seed is the service's own NKEY user seed.
	Seed     []byte
	Manifest roles.Manifest
	// APIPrefix is the JetStream API prefix of the services' account;
	// empty means DefaultAPIPrefix.
	APIPrefix string
	// RequestTimeout bounds every publish and read; 0 means 2 s.
	RequestTimeout time.Duration
	// InProcess, if set, is a broker in this process: no sockets, the same
	// credential. The connection does not survive that broker's end.
	InProcess interface{ InProcessConn() (net.Conn, error) }
}

// Deps are the bus's collaborators; all but Log may be left out.
type Deps struct {
	Log   *slog.Logger
	Meter metric.Meter
	Now   func() time.Time
	// Clock, if set, is the desk's own time: every timestamp of the broker is
	// read through it, and every moment the broker is given is written through
	// it.
	Clock Clock
}

// Clock translates between the broker's time and the desk's.
type Clock interface {
	FromBroker(t time.Time) time.Time
	ToBroker(t time.Time) time.Time
}

// brokerTime is the clock of a desk that lives in the broker's time.
type brokerTime struct{}

func (brokerTime) FromBroker(t time.Time) time.Time { return t }
func (brokerTime) ToBroker(t time.Time) time.Time   { return t }

// Conn is one service's connection. It is safe for concurrent use.
type Conn struct {
	cfg     Config
	role    roles.Role
	log     *slog.Logger
	now     func() time.Time
	clock   Clock
	metrics *metrics
	nc      *nats.Conn
	link    *link
	replies *replies
	grants  grants
	health  health
	closing sync.Once
}

// Connect dials the broker on the service's own credential. It tries a bounded
// number of times; once connected it reconnects for ever. It fails with
// ErrMissing when a stream or consumer the service reads is not there, so that
// no traffic is taken on top of a lost stream.
func Connect(ctx context.Context, cfg Config, deps Deps) (*Conn, error) {
	role, ok := cfg.Manifest.Role(cfg.Service)
	if !ok {
		return nil, fmt.Errorf("connect: the manifest has no service %q", cfg.Service)
	}
	if cfg.APIPrefix == "" {
		cfg.APIPrefix = DefaultAPIPrefix
	}
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = defaultRequestTimeout
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Meter == nil {
		deps.Meter = noop.NewMeterProvider().Meter("bus")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Clock == nil {
		deps.Clock = brokerTime{}
	}
	m, err := newMetrics(deps.Meter)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &Conn{
		cfg: cfg, role: role, log: deps.Log, now: deps.Now, clock: deps.Clock, metrics: m,
		grants: grantsOf(cfg.Manifest, role, cfg.APIPrefix),
	}
	c.link = newLink(c)
	if c.nc, err = c.dial(ctx); err != nil {
		c.link.close()
		return nil, fmt.Errorf("connect as %s: %w", cfg.Service, err)
	}
	if c.replies, err = listenReplies(c.nc); err != nil {
		c.nc.Close()
		c.link.close()
		return nil, fmt.Errorf("connect as %s: subscribe to replies: %w", cfg.Service, err)
	}
	c.link.replies.Store(c.replies)
	if err := c.verify(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect as %s: %w", cfg.Service, err)
	}
	return c, nil
}

func (c *Conn) dial(ctx context.Context) (*nats.Conn, error) {
	kp, err := nkeys.FromSeed(c.cfg.Seed)
	if err != nil {
		return nil, fmt.Errorf("read the seed: %w", err)
	}
	pub, err := kp.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("read the seed: %w", err)
	}
	opts := []nats.Option{
		nats.Name(string(c.cfg.Service)),
		nats.Nkey(pub, kp.Sign),
		nats.CustomInboxPrefix(InboxPrefix(c.cfg.Service)),
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(backoff),
		// Nothing is buffered while disconnected: a publish that waits in a
		// buffer would be sent after its caller gave up.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsOut),
		nats.ErrorHandler(c.link.onError),
		nats.DisconnectErrHandler(c.link.onDisconnect),
		nats.ReconnectHandler(c.link.onReconnect),
	}
	if c.cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c.cfg.InProcess))
	}
	for attempt := 1; ; attempt++ {
		nc, err := nats.Connect(c.cfg.URL, opts...)
		if err == nil {
			return nc, nil
		}
		if attempt == dialAttempts || errors.Is(err, nats.ErrAuthorization) {
			return nil, err
		}
		if sleep(ctx, backoff(attempt)) != nil {
			return nil, err
		}
	}
}

// backoff is the pause before a new try: 50 ms doubling up to 2 s.
func backoff(attempt int) time.Duration {
	return min(50*time.Millisecond<<min(attempt, 6), 2*time.Second)
}

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Service is who this connection speaks as.
func (c *Conn) Service() roles.Service { return c.cfg.Service }

// Ready says why the connection cannot be relied on: not connected, something
// the manifest grants was refused by the broker, or a consumer that cannot pull
// or whose handlers all hang.
func (c *Conn) Ready() error {
	if !c.nc.IsConnected() {
		return fmt.Errorf("bus: %w", ErrUnavailable)
	}
	if err := c.link.violation(); err != nil {
		return fmt.Errorf("bus: a grant of the manifest does not work: %w", err)
	}
	return c.health.err()
}

// OnServerChange calls fn after every reconnect: whichever server answers may
// have lost what it had not yet synced. Calls never overlap, and several
// reconnects may be one call.
func (c *Conn) OnServerChange(fn func()) { c.link.onChange(fn) }

// Close ends the connection, after the broker has read what was sent. Consume
// calls should have ended before it.
func (c *Conn) Close() {
	c.closing.Do(func() {
		c.flush()
		c.nc.Close()
		c.link.close()
		c.replies.failAll(fmt.Errorf("connection closed: %w", ErrUncertain))
	})
}

// flush waits, bounded, until the broker has read what was sent: closing a
// socket may discard what is on its way, and with it acknowledgements.
func (c *Conn) flush() {
	if !c.nc.IsConnected() {
		return
	}
	if err := c.nc.FlushTimeout(c.cfg.RequestTimeout); err != nil {
		c.log.Warn("broker connection not flushed", slog.Any("error", err))
	}
}
