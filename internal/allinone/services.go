package allinone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/policy"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/telemetry"
	"github.com/amends-dev/amends/services/composer/composer"
	"github.com/amends-dev/amends/services/console/console"
	"github.com/amends-dev/amends/services/gateway/gateway"
	"github.com/amends-dev/amends/services/orchestrator/orchestrator"
	"github.com/amends-dev/amends/services/payment-investigator/investigator"
	"github.com/amends-dev/amends/services/policy-specialist/policydesk"
	"github.com/amends-dev/amends/services/refund-executor/executor"
	"github.com/amends-dev/amends/services/verifier/verifier"
)

// member is one service of the desk with what it is given: its own connection
// on its own credential, its own telemetry.
type member struct {
	conn *bus.Conn
	tel  *telemetry.Telemetry
	log  *slog.Logger
}

// part is how to run one service.
type part struct {
	service roles.Service
	run     func(ctx context.Context, m member) error
}

// startServices starts every service and waits until the HTTP APIs serve.
func (d *Desk) startServices(ctx, begin context.Context) error {
	corpus, err := policy.Embedded()
	if err != nil {
		return err
	}
	gatewayAt, consoleAt := make(chan string, 1), make(chan string, 1)
	for _, p := range d.parts(d.configure(corpus.Version()), gatewayAt, consoleAt) {
		if slices.Contains(d.opts.Apart, p.service) {
			continue
		}
		if err := d.startPart(ctx, begin, p); err != nil {
			return err
		}
	}
	for _, api := range []struct {
		service roles.Service
		listen  string
		at      chan string
		into    *string
	}{{roles.Gateway, d.opts.GatewayListen, gatewayAt, &d.GatewayURL}, {roles.Console, d.opts.ConsoleListen, consoleAt, &d.ConsoleURL}} {
		if slices.Contains(d.opts.Apart, api.service) {
			*api.into = "http://" + api.listen
			continue
		}
		select {
		case addr := <-api.at:
			*api.into = "http://" + addr
		case err := <-d.failed:
			return err
		case <-begin.Done():
			return fmt.Errorf("start the desk: %w", begin.Err())
		}
	}
	return nil
}

func (d *Desk) startPart(ctx, begin context.Context, p part) error {
	tel, err := telemetry.New(string(p.service))
	if err != nil {
		return err
	}
	log := d.log.With(slog.String("service", string(p.service)))
	conn, err := bus.Connect(begin, bus.Config{URL: d.broker.URL(), Service: p.service, Seed: d.broker.Seed(p.service), Manifest: roles.Desk(), InProcess: d.broker},
		d.busDeps(log, tel))
	if err != nil {
		return err
	}
	d.running.Go(func() {
		err := p.run(ctx, member{conn: conn, tel: tel, log: log})
		conn.Close()
		err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx)))
		if ctx.Err() == nil || err != nil {
			select {
			case d.failed <- fmt.Errorf("%s ended: %w", p.service, errors.Join(err, errEnded)):
			default: // somebody is told already
			}
		}
	})
	return nil
}

// sweepOwnTime is how often a desk in a time of its own looks for overdue cases:
// a leap can make many of them so at once.
const sweepOwnTime = 2 * time.Second

func (d *Desk) busDeps(log *slog.Logger, tel *telemetry.Telemetry) bus.Deps {
	deps := bus.Deps{Log: log, Meter: tel.Meter(), Now: d.opts.now()}
	if d.opts.Clock != nil { // a nil *Clock is no nil bus.Clock
		deps.Clock = d.opts.Clock
	}
	return deps
}

var errEnded = errors.New("a service does not end by itself")

// configs are the services' configurations, as they would be in their files.
type configs struct {
	investigator investigator.Config
	policydesk   policydesk.Config
	composer     composer.Config
	verifier     verifier.Config
	executor     executor.Config
	console      console.Config
	gateway      gateway.Config
	orchestrator orchestrator.Config
}

func (d *Desk) configure(corpus string) configs {
	f := d.files
	c := configs{
		investigator: investigator.Defaults(), policydesk: policydesk.Defaults(), composer: composer.Defaults(), verifier: verifier.Defaults(),
		executor: executor.Defaults(), console: console.Defaults(), gateway: gateway.Defaults(), orchestrator: orchestrator.Defaults(),
	}
	c.investigator.Payments.URL, c.investigator.Payments.KeyFile = d.SandboxURL, f.secretFile("payments-read-investigator")
	c.verifier.Payments.URL, c.verifier.Payments.KeyFile = d.SandboxURL, f.secretFile("payments-read-verifier")
	c.executor.Payments.URL, c.executor.Payments.KeyFile = d.SandboxURL, f.secretFile("payments-refund-write")
	if d.opts.KeyWindow > 0 {
		c.executor.Payments.KeyWindow = d.opts.KeyWindow
	}
	if d.opts.NoProviderKeys {
		c.executor.Payments.KeyWindow = 0
	}
	c.executor.ApproverRegistry = f.registry()
	c.orchestrator.Payments.URL, c.orchestrator.Payments.KeyFile = d.SandboxURL, f.secretFile("payments-verify-owner")
	if d.opts.Clock != nil {
		c.orchestrator.SweepEvery = sweepOwnTime
	}
	for _, r := range []*reconcile.Config{&c.executor.Reconcile, &c.orchestrator.Reconcile} {
		r.Tenants, r.Every = f.tenants, 0
		if d.opts.Reconcile != nil {
			d.opts.Reconcile(r)
		}
	}
	c.orchestrator.ApproverRegistry, c.orchestrator.PolicyCorpus = f.registry(), corpus
	c.console.Listen = orFree(d.opts.ConsoleListen)
	c.console.Staff = []console.Staff{{ID: StaffMember, TokenSHA256: f.hash("staff-sam"), Tenants: f.tenants, MayStopAll: true, MayResume: true}}
	c.console.Redis.Addr = d.redis.Addr()
	c.gateway.Listen = orFree(d.opts.GatewayListen)
	c.gateway.Redis.Addr = d.redis.Addr()
	if d.opts.Unlimited {
		l, all := &c.gateway.Limits, gateway.Rate{PerSecond: 1_000_000, Burst: 1_000_000}
		l.Posts, l.CustomerPosts, l.TenantPosts = all, all, all
		l.Reads, l.CustomerReads, l.TenantReads = all, all, all
	}
	c.gateway.Channels = append([]gateway.Channel{
		{Name: Channel, Tenant: Tenant, KeySHA256: f.hash("channel-web"), Customer: Customer, MayNameCaseIDs: true},
		{Name: "partner", Tenant: Tenant, KeySHA256: f.hash("channel-any"), MayNameCustomer: true},
	}, d.opts.Channels...)
	c.gateway.Provider = gateway.Provider{SecretFiles: []string{f.secretFile("webhook-payments")}, Tenants: f.tenants}
	if d.opts.Webhook != "" {
		c.gateway.Channels[0].Webhook = gateway.Webhook{URL: d.opts.Webhook, SecretFiles: []string{f.secretFile("webhook-web")}, AllowPrivate: true}
	}
	for _, g := range d.opts.Guests {
		c.gateway.Channels = append(c.gateway.Channels, gateway.Channel{
			Name: g.Channel, Tenant: g.Tenant, KeySHA256: sha(f.trial.GuestTokens[g]), MayNameCustomer: true,
		})
	}
	return c
}

// parts lists the services. The workers first: an order of convenience, not of
// need.
func (d *Desk) parts(c configs, gatewayAt, consoleAt chan<- string) []part {
	now := d.opts.now()
	parts := []part{
		{roles.PaymentInvestigator, func(ctx context.Context, m member) error {
			return investigator.Run(ctx, c.investigator, investigator.Deps{Bus: m.conn, Log: m.log, Now: now})
		}},
		{roles.PolicySpecialist, func(ctx context.Context, m member) error {
			return policydesk.Run(ctx, c.policydesk, policydesk.Deps{Bus: m.conn, Log: m.log, Now: now})
		}},
		{roles.Composer, func(ctx context.Context, m member) error {
			return composer.Run(ctx, c.composer, composer.Deps{Bus: m.conn, Log: m.log, Now: now})
		}},
		{roles.Verifier, func(ctx context.Context, m member) error {
			return verifier.Run(ctx, c.verifier, verifier.Deps{Bus: m.conn, Log: m.log, Now: now})
		}},
		{roles.RefundExecutor, func(ctx context.Context, m member) error {
			return executor.Run(ctx, c.executor, executor.Deps{Bus: m.conn, Log: m.log, Meter: m.tel.Meter(), Now: now})
		}},
		{roles.Console, func(ctx context.Context, m member) error {
			return console.Run(ctx, c.console, console.Deps{Bus: m.conn, Log: m.log, Meter: m.tel.Meter(), Now: now, Ready: tell(consoleAt)})
		}},
		{roles.Gateway, func(ctx context.Context, m member) error {
			return gateway.Run(ctx, c.gateway, gateway.Deps{Bus: m.conn, Log: m.log, Meter: m.tel.Meter(), Tracer: m.tel.Tracer(), Now: now, Ready: tell(gatewayAt)})
		}},
	}
	for range d.opts.Orchestrators {
		parts = append(parts, part{roles.Orchestrator, func(ctx context.Context, m member) error {
			return orchestrator.Run(ctx, c.orchestrator, orchestrator.Deps{Bus: m.conn, Log: m.log, Meter: m.tel.Meter(), Now: now})
		}})
	}
	return parts
}

func orFree(listen string) string {
	if listen == "" {
		return "127.0.0.1:0"
	}
	return listen
}

func tell(at chan<- string) func(string) { return func(addr string) { at <- addr } }
