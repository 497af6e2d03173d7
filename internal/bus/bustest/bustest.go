package bustest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.opentelemetry.io/otel/metric"

	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/provision"
	"github.com/amends-dev/amends/internal/roles"
)

// Options change what Desk starts; the zero value is the desk's own manifest
// on default sync.
type Options struct {
	// Manifest defaults to roles.Desk(). Quick gives one with short delays.
	Manifest *roles.Manifest
	// SyncAlways syncs before each acknowledgement, as in production.
	SyncAlways bool
	// Bare leaves out the streams and consumers.
	Bare bool
	// RequestTimeout of the connections; default 2 s.
	RequestTimeout time.Duration
	Log            *slog.Logger
	Meter          metric.Meter
	// Clock, if set, is the connections' own time.
	Clock bus.Clock
}

// Broker is a running broker that ends with its test.
type Broker struct {
	tb    testing.TB
	opts  Options
	start broker.Options

	mu     sync.Mutex
	server *broker.Server
}

// Quick is a manifest with delays of milliseconds: AckWait, and the given
// backoff, for every consumer.
func Quick(ackWait time.Duration, backoff ...time.Duration) *roles.Manifest {
	m := roles.Desk()
	for i := range m.Consumers {
		m.Consumers[i].AckWait, m.Consumers[i].Backoff = ackWait, backoff
	}
	return &m
}

// Desk starts a broker in a directory of the test.
func Desk(tb testing.TB, o Options) *Broker {
	tb.Helper()
	if o.Manifest == nil {
		m := roles.Desk()
		o.Manifest = &m
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Broker{tb: tb, opts: o, start: broker.Options{
		Manifest: *o.Manifest, StoreDir: tb.TempDir(), SeedDir: tb.TempDir(),
		SyncAlways: o.SyncAlways, Operator: true, Log: o.Log,
	}}
	b.Start()
	tb.Cleanup(b.Stop)
	if !o.Bare {
		b.Provision()
	}
	return b
}

// Start starts the broker, again after Stop: on the same port and store.
func (b *Broker) Start() {
	b.tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := broker.Start(b.start)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.server, b.start.Port = s, s.Port()
}

// Stop stops the broker; its files stay.
func (b *Broker) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		b.server.Shutdown()
		b.server = nil
	}
}

// Provision applies the manifest.
func (b *Broker) Provision() { b.provision(provision.Options{}) }

// ProvisionNew applies the manifest also where a synced stream is gone.
func (b *Broker) ProvisionNew() { b.provision(provision.Options{NewStreams: true}) }

func (b *Broker) provision(o provision.Options) {
	b.tb.Helper()
	nc, js, err := provision.Connect(b.URL(), b.Seed(broker.Provisioner))
	if err != nil {
		b.tb.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := provision.Apply(ctx, js, *b.opts.Manifest, o); err != nil {
		b.tb.Fatal(err)
	}
}

// Manifest is what the broker runs on.
func (b *Broker) Manifest() roles.Manifest { return *b.opts.Manifest }

// URL is where the running broker listens.
func (b *Broker) URL() string { return b.Server().URL() }

// Seed is the NKEY seed of a service or identity.
func (b *Broker) Seed(id roles.Service) []byte { return b.Server().Seed(id) }

// Server is the running broker.
func (b *Broker) Server() *broker.Server {
	b.tb.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		b.tb.Fatal("the broker is stopped")
	}
	return b.server
}

// Connect gives a connection on the service's own credential; it is closed
// with the test.
func (b *Broker) Connect(s roles.Service) *bus.Conn {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := bus.Connect(ctx, bus.Config{
		URL: b.URL(), Service: s, Seed: b.Seed(s), Manifest: *b.opts.Manifest, RequestTimeout: b.opts.RequestTimeout,
	}, bus.Deps{Log: b.opts.Log, Meter: b.opts.Meter, Clock: b.opts.Clock})
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(c.Close)
	return c
}

// Raw is a bare client on the credential of a service or identity, for what
// the bus would never send.
func (b *Broker) Raw(id roles.Service, opts ...nats.Option) *nats.Conn {
	b.tb.Helper()
	kp, err := nkeys.FromSeed(b.Seed(id))
	if err != nil {
		b.tb.Fatal(err)
	}
	key, err := kp.PublicKey()
	if err != nil {
		b.tb.Fatal(err)
	}
	nc, err := nats.Connect(b.URL(), append([]nats.Option{
		nats.Nkey(key, kp.Sign), nats.CustomInboxPrefix(bus.InboxPrefix(id)),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, opts...)...)
	if err != nil {
		b.tb.Fatal(err)
	}
	b.tb.Cleanup(nc.Close)
	return nc
}

// Admin reads and changes anything in the streams' account.
func (b *Broker) Admin() jetstream.JetStream {
	b.tb.Helper()
	js, err := jetstream.New(b.Raw(broker.Operator))
	if err != nil {
		b.tb.Fatal(err)
	}
	return js
}

// Await polls cond until it holds, and fails the test after ten seconds.
func Await(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("not within ten seconds: %s", what)
		}
	}
}
