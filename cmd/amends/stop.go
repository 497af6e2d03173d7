package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/display"
	"github.com/amends-dev/amends/internal/ident"
)

// switchFlags name a switch of the emergency stop. What is stopped is said on
// the command line and never by the environment.
type switchFlags struct {
	Tenant string `xor:"scope" required:"" help:"The tenant whose refunds it is about."`
	All    bool   `xor:"scope" required:"" help:"It is about every tenant."`
	Reason string `required:"" help:"Why, in up to 256 characters; everybody who may see the switch reads it, and the audit log keeps it."`
	staffFlags
}

// AfterApply checks them.
func (f *switchFlags) AfterApply() error {
	if !f.All {
		if err := ident.Tokens("--tenant", f.Tenant); err != nil {
			return err
		}
		if f.Tenant == deskapi.ScopeAll {
			return errors.New("--tenant: say --all to mean every tenant")
		}
	}
	if strings.TrimSpace(f.Reason) == "" || utf8.RuneCountInString(f.Reason) > deskapi.MaxStopReason {
		return errors.New("--reason: want 1 to 256 characters")
	}
	return f.staffFlags.AfterApply()
}

func (f *switchFlags) scope() string {
	if f.All {
		return deskapi.ScopeAll
	}
	return f.Tenant
}

// stopCmd is `amends stop`.
type stopCmd struct{ switchFlags }

// Help says more.
func (stopCmd) Help() string {
	return `From when this returns no refund is begun, and cases keep their place until
amends resume. Refunds that were with the provider already are not called back.

  amends stop --tenant acme-in --reason "refunds on wrong captures"
  amends stop --all --reason "provider answers with wrong amounts"`
}

// Run stops.
func (c *stopCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	stopped := true
	out, err := handIn(ctx, desk.ChangeStop, deskapi.StopRequest{Scope: c.scope(), Stopped: &stopped, Reason: c.Reason})
	if err != nil {
		return overSwitch(err)
	}
	if c.JSON {
		return t.writeJSON(out)
	}
	fmt.Fprintf(t.out, "stopped: %s\n", describeSwitch(out.Stop))
	if out.Replaced != nil && out.Replaced.Stopped {
		fmt.Fprintf(t.out, "it was stopped before: %s\n", describeSwitch(*out.Replaced))
	}
	if !out.Audited {
		fmt.Fprintln(t.err, "amends: the audit log could not be written; the stop is set all the same")
	}
	return nil
}

// describeSwitch says what a switch is about, and who set it, when and why.
func describeSwitch(s deskapi.Stop) string {
	what := "tenant " + display.Line(s.Scope)
	if s.Scope == deskapi.ScopeAll {
		what = "every tenant"
	}
	if s.Unreadable {
		return what + ", by a switch that cannot be read, which counts as a stop"
	}
	if s.By == "" {
		return what
	}
	return fmt.Sprintf("%s, by %s%s: %s", what, display.Line(s.By), clock(" at ", s.At), display.Line(s.Reason))
}

// overSwitch adds the switch that is in the way to what the console said.
func overSwitch(err error) error {
	p, ok := errors.AsType[*deskapi.Problem](err)
	if !ok || p.Current == nil {
		return err
	}
	state := "released"
	if p.Current.Stopped {
		state = "stopped"
	}
	return fmt.Errorf("%w; now %s: %s", err, state, describeSwitch(*p.Current))
}
