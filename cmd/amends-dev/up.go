package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
)

// upCmd keeps a desk running.
type upCmd struct {
	Dir     string `help:"Where the desk keeps everything; found again at the next start." default:".amends" type:"path"`
	Gateway string `help:"Address of the customer API." default:"127.0.0.1:8080"`
	Console string `help:"Address of the staff API and pages." default:"127.0.0.1:8081"`
	Sandbox string `help:"Address of the payments sandbox." default:"127.0.0.1:8090"`
	Webhook string `help:"Where the replies of the trial channel are sent, signed with the secret in secrets/webhook-web." optional:""`
	// External runs everything but the services and writes their configurations.
	External bool `help:"Run broker, Redis and sandbox only, and write a configuration file for each service's own binary."`

	faultFlags
}

// Run runs until it is interrupted, or a service ends.
func (u upCmd) Run(ctx context.Context, c *console) error {
	if err := os.MkdirAll(u.Dir, 0o700); err != nil {
		return fmt.Errorf("desk directory: %w", err)
	}
	desk, err := allinone.Start(ctx, allinone.Options{
		Dir: u.Dir, GatewayListen: u.Gateway, ConsoleListen: u.Console, SandboxListen: u.Sandbox, External: u.External, Webhook: u.Webhook, Faults: u.faults(), Log: c.log,
		Reconcile: func(r *reconcile.Config) { r.Every = reconcile.Defaults().Every },
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; choose others with --gateway, --console and --sandbox", err)
	}
	if err != nil {
		return err
	}
	if err := u.begin(ctx, c, desk); err != nil {
		_ = desk.Close() // the first error is the one to tell
		return err
	}
	select {
	case <-ctx.Done():
		c.printf("\nStopping: what is in flight is finished first.\n")
		return desk.Close()
	case err := <-desk.Failed():
		_ = desk.Close() // the first error is the one to tell
		return err
	}
}

// begin loads the trial orders where there are none yet, and says what to do.
func (u upCmd) begin(ctx context.Context, c *console, desk *allinone.Desk) error {
	have, err := desk.Provider.Ledger(ctx)
	if err != nil {
		return err
	}
	if len(have.Orders) == 0 {
		if err := load(ctx, desk, trialLedger); err != nil {
			return err
		}
	}
	if !u.External {
		u.explain(c, desk)
		return nil
	}
	desk.GatewayURL, desk.ConsoleURL = "http://"+u.Gateway, "http://"+u.Console
	port := 9100
	files, err := desk.WriteConfigs(desk.Dir(), func(roles.Service) string {
		port++
		return fmt.Sprintf("127.0.0.1:%d", port)
	})
	if err != nil {
		return err
	}
	c.printf("Broker, Redis and sandbox are up. Build the services with `go build -o bin/ ./services/...` and start each with its file:\n\n")
	for _, s := range slices.Sorted(maps.Keys(files)) {
		c.printf("  bin/%s --config %s\n", s, quote(files[s]))
	}
	c.printf("\n")
	u.explain(c, desk)
	return nil
}

// quote makes a path one word of a shell.
func quote(path string) string {
	if strings.ContainsAny(path, " '\"$\\`") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

func (u upCmd) explain(c *console, desk *allinone.Desk) {
	t := desk.Trial
	secret := func(name string) string { return quote(filepath.Join(desk.Dir(), "secrets", name)) }
	staff := secret("staff-sam")
	c.printf(`The desk is up. Everything it keeps is in %s.

  customer API   %s   (OpenAPI at /openapi.json)
  staff console  %s/cases/%s/%s   (any user name; password: the staff token)
  sandbox        %s   (OpenAPI at /openapi.yaml)
  broker         %s

  channel key    %s   (posts for %s)
  partner's key  %s   (posts for the customer it names)
  staff token    %s
  approver key   %s

A new desk has three orders of %s: 8472 and 8473 were charged twice, and a person
approves a refund of 8472; of 8474 the second payment is only a hold.

A channel needs an address and a key:

  export AMENDS_GATEWAY_URL=%s
  export AMENDS_TOKEN_FILE=%s

Post, look, follow:

  curl -sS "$AMENDS_GATEWAY_URL/v1/cases" -H "Authorization: Bearer $(cat "$AMENDS_TOKEN_FILE")" -H 'Idempotency-Key: try-1' -H 'Content-Type: application/json' -d '{"case_id":"%s","message":"%s"}'
  curl -sS "$AMENDS_GATEWAY_URL/v1/cases/%s" -H "Authorization: Bearer $(cat "$AMENDS_TOKEN_FILE")"
  curl -sSN "$AMENDS_GATEWAY_URL/v1/cases/%s/events" -H "Authorization: Bearer $(cat "$AMENDS_TOKEN_FILE")"

When it waits for approval, approve it with the approver's own key:

  go run ./cmd/amends approve %s --key %s --tenant %s --console %s --token-file %s

Stop all refunds of the tenant, let them go on, and compare all records of money;
staff do that, with their own token (docs/stop.md, docs/reconciliation.md):

  go run ./cmd/amends stop --tenant %s --reason trial --console %s --token-file %s
  go run ./cmd/amends resume --tenant %s --reason trial --console %s --token-file %s
  go run ./cmd/amends reconcile --tenant %s --console %s --token-file %s

Let the payments provider fail, and see how often it did (docs/sandbox.md):

  go run ./cmd/amends-dev sandbox faults set answer_lost,times=1 --url %s --key-file %s
  go run ./cmd/amends-dev sandbox faults list --url %s --key-file %s

docs/channel-guide.md goes on from here. Interrupt to stop.
`, desk.Dir(), desk.GatewayURL, desk.ConsoleURL, allinone.Tenant, demoCase, desk.SandboxURL, desk.BrokerURL(),
		secret("channel-web"), allinone.Customer, secret("channel-any"), t.StaffToken, quote(t.KeyFiles[allinone.Approver]),
		allinone.Customer,
		desk.GatewayURL, secret("channel-web"),
		demoCase, demoMessage, demoCase, demoCase,
		demoCase, quote(t.KeyFiles[allinone.Approver]), allinone.Tenant, desk.ConsoleURL, staff,
		allinone.Tenant, desk.ConsoleURL, staff, allinone.Tenant, desk.ConsoleURL, staff, allinone.Tenant, desk.ConsoleURL, staff,
		desk.SandboxURL, secret("payments-admin"), desk.SandboxURL, secret("payments-admin"))
}
