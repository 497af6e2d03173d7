package allinone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/flock"
	"github.com/amends-dev/amends/internal/provision"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/services/gateway/gateway"
)

// Options say how to run a desk; the zero value but for Dir is the demo's.
type Options struct {
	// Dir keeps everything; it must exist.
	Dir string
	// NoSync leaves acknowledged messages to the broker's two-minute sync.
	NoSync bool
	// Orchestrators is how many replicas share the orchestrator's consumers;
	// default 1.
	Orchestrators int
	// Operator adds an identity that may inspect every stream, for tests and
	// for the counters of the load test.
	Operator bool
	// External leaves the services out: broker, Redis and provider run, and
	// WriteConfigs gives the files the services' own binaries start with.
	External bool
	// Apart leaves some services out: they run as processes of their own, from
	// the files of WriteConfigs. A gateway or console among them listens where
	// this says.
	Apart []roles.Service
	// Unlimited takes the rate limits away, for load.
	Unlimited bool
	// Channels come beside the trial world's.
	Channels []gateway.Channel
	// GatewayListen and ConsoleListen default to free ports on the loopback
	// address, as do SandboxListen and BrokerPort.
	GatewayListen, ConsoleListen, SandboxListen string
	BrokerPort                                  int
	// Webhook is where the replies of Channel's cases are sent, signed with
	// Trial.WebhookSecret; on any address, also without TLS.
	Webhook string
	// Log gets the services' logs; nil discards them.
	Log slog.Handler
	// Clock, if set, is the desk's own time: the broker's timestamps and
	// schedules pass through it, and every service and the provider read it.
	Clock *deskclock.Clock
	// Faults go wrong at the provider from the start; SetFaults changes them.
	Faults sandbox.Faults
	// KeyWindow is how long the provider remembers an idempotency key, and how
	// long the executor counts on it; by default 24 h.
	KeyWindow time.Duration
	// NoProviderKeys: the provider keeps none, and the executor knows.
	NoProviderKeys bool
	// Reconcile changes how records of money are compared; by default only
	// when it is asked for.
	Reconcile func(*reconcile.Config)
	// Guests are channels besides the trial world's. Staff and approvers are
	// entitled for their tenants too.
	Guests []Guest
	// ApproverLimits are what each trial approver may approve; nil takes the
	// trial world's.
	ApproverLimits []approval.Limit
}

// Guest is a server-to-server channel that names its customers.
type Guest struct{ Tenant, Channel string }

// now is the clock of everything in the desk.
func (o Options) now() func() time.Time {
	if o.Clock == nil {
		return time.Now
	}
	return o.Clock.Now
}

// Desk is a running desk.
type Desk struct {
	GatewayURL, ConsoleURL, SandboxURL string
	// Trial are the credentials to try it with.
	Trial Trial
	// Provider administers the sandbox: orders in, everything out.
	Provider *sandbox.Admin

	opts    Options
	log     *slog.Logger
	broker  *broker.Server
	redis   *miniredis.Miniredis
	sandbox *sandbox.Server
	files   *files
	lock    *os.File
	stop    context.CancelFunc
	running sync.WaitGroup
	failed  chan error
	once    sync.Once
}

// startLimit bounds how long the parts may take to begin.
const startLimit = 30 * time.Second

// Start runs a desk until Close. It returns when requests are served.
func Start(ctx context.Context, o Options) (_ *Desk, err error) {
	if o.Orchestrators == 0 {
		o.Orchestrators = 1
	}
	if o.Log == nil {
		o.Log = slog.DiscardHandler
	}
	d := &Desk{opts: o, log: slog.New(o.Log), failed: make(chan error, 16)}
	ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.lock, err = flock.Lock(filepath.Join(o.Dir, "lock")); err != nil {
		// A second broker on the same store would destroy it.
		return nil, fmt.Errorf("desk directory: %w", err)
	}
	if d.files, err = openFiles(o); err != nil {
		return nil, err
	}
	d.Trial = d.files.trial
	begin, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := d.startBroker(begin); err != nil {
		return nil, err
	}
	if d.redis, err = miniredis.Run(); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	// The provider outlives the services: calls in flight at the end are answered.
	d.sandbox, err = sandbox.Start(context.WithoutCancel(ctx), sandbox.Config{
		Listen: o.SandboxListen, File: filepath.Join(o.Dir, "sandbox", "journal.jsonl"), Keys: d.files.sandboxKeys(),
		KeyWindow: o.KeyWindow, NoKeys: o.NoProviderKeys, Faults: o.Faults,
		Now: o.now(), Log: d.log.With(slog.String("service", "sandbox")),
	})
	if err != nil {
		return nil, fmt.Errorf("start sandbox: %w", err)
	}
	d.SandboxURL = d.sandbox.URL
	d.Provider = sandbox.NewAdmin(d.SandboxURL, d.files.secret("payments-admin"))
	gatewayAt := urlOf(o.GatewayListen)
	if !o.External {
		if err := d.startServices(ctx, begin); err != nil {
			return nil, err
		}
		gatewayAt = d.GatewayURL
	}
	if err := d.tellGateway(gatewayAt); err != nil {
		return nil, err
	}
	return d, nil
}

// tellGateway has the provider send its webhooks to the gateway, where its
// address is known.
func (d *Desk) tellGateway(url string) error {
	if url == "" {
		return nil
	}
	return d.sandbox.SendEvents(sandbox.Events{URL: url + deskapi.ProviderEventsPath, Secret: d.Trial.ProviderSecret})
}

// urlOf gives the address of a listener of this machine, or nothing where its
// port is not known beforehand.
func urlOf(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return ""
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// SetFaults changes what goes wrong at the provider, and counts anew; Faults
// tells how often each struck.
func (d *Desk) SetFaults(f sandbox.Faults) error { return d.sandbox.SetFaults(f) }

// Faults gives the provider's faults with how often each struck.
func (d *Desk) Faults() sandbox.Faults { return d.sandbox.Faults() }

func (d *Desk) startBroker(ctx context.Context) error {
	m := roles.Desk()
	var err error
	d.broker, err = broker.Start(broker.Options{
		Manifest: m, StoreDir: filepath.Join(d.opts.Dir, "broker"), SeedDir: filepath.Join(d.opts.Dir, "seeds"),
		Port: d.opts.BrokerPort, SyncAlways: !d.opts.NoSync, Operator: d.opts.Operator, Log: d.log.With(slog.String("service", "broker")),
	})
	if err != nil {
		return err
	}
	nc, js, err := provision.Connect(d.broker.URL(), d.broker.Seed(broker.Provisioner))
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := provision.Apply(ctx, js, m, provision.Options{}); err != nil {
		return err
	}
	return provision.Check(ctx, js, m, provision.Options{})
}

// BrokerURL is where the broker listens.
func (d *Desk) BrokerURL() string { return d.broker.URL() }

// Seed is the broker credential of a service, for tests that act as it.
func (d *Desk) Seed(s roles.Service) []byte { return d.broker.Seed(s) }

// Dir is where the desk keeps everything.
func (d *Desk) Dir() string { return d.opts.Dir }

// Failed tells of a service that ended by itself.
func (d *Desk) Failed() <-chan error { return d.failed }

// Close stops the services, letting what is in flight finish, then sandbox,
// Redis and broker. The directory stays.
func (d *Desk) Close() error {
	var err error
	d.once.Do(func() {
		d.stop()
		d.running.Wait()
		if d.sandbox != nil {
			err = errors.Join(err, d.sandbox.Close())
		}
		if d.redis != nil {
			d.redis.Close()
		}
		if d.broker != nil {
			d.broker.Shutdown()
		}
		if d.lock != nil {
			err = errors.Join(err, d.lock.Close())
		}
	})
	return err
}

// TempDir makes a directory for a desk that is not kept, and gives how to
// remove it.
func TempDir() (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", "amends-"); err != nil {
		return "", nil, fmt.Errorf("desk directory: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // left-over files are in the temporary directory
}
