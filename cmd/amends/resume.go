package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/deskapi"
)

// resumeCmd is `amends resume`.
type resumeCmd struct {
	switchFlags
	Yes bool `help:"Release the stop of every tenant without asking."`
}

// Help says more.
func (resumeCmd) Help() string {
	return `Releases exactly the stop that is shown: when somebody sets it again meanwhile,
nothing is released. Held refunds go on within seconds, each with its own key.
A tenant goes on when neither its own stop nor that of all is set.

  amends resume --tenant acme-in --reason "captures corrected"
  amends resume --all --reason "provider confirmed the fix"`
}

// Run resumes.
func (c *resumeCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	seen, err := desk.Stops(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(seen.Stops, func(s deskapi.Stop) bool { return s.Scope == c.scope() })
	if i < 0 {
		return fmt.Errorf("not released: there is no switch of %s that you may see", c.scope())
	}
	set := seen.Stops[i]
	if !set.Stopped {
		return c.tell(t, deskapi.StopChanged{Stop: set}, "not stopped: "+describeSwitch(set))
	}
	if err := c.confirm(t, set); err != nil {
		return fmt.Errorf("not released: %w", err)
	}
	stopped := false
	out, err := desk.ChangeStop(ctx, deskapi.StopRequest{Scope: c.scope(), Stopped: &stopped, Reason: c.Reason, Sequence: &set.Sequence})
	if err != nil {
		return overSwitch(err)
	}
	return c.tell(t, out, "released: "+describeSwitch(out.Stop))
}

func (c *resumeCmd) tell(t *terminal, out deskapi.StopChanged, line string) error {
	if c.JSON {
		return t.writeJSON(out)
	}
	fmt.Fprintln(t.out, line)
	return nil
}

// confirm asks before everybody's stop is released.
func (c *resumeCmd) confirm(t *terminal, set deskapi.Stop) error {
	out := t.out
	if c.JSON {
		out = t.err
	}
	fmt.Fprintf(out, "was stopped: %s\n", describeSwitch(set))
	if !c.All || c.Yes {
		return nil
	}
	if !t.interactive {
		return errors.New("nobody is there to ask; say --yes to release everybody's stop without asking")
	}
	fmt.Fprint(out, "\nRefunds of every tenant go on. Type all to release it: ")
	answer, err := t.answer()
	if err != nil {
		return err
	}
	if answer != deskapi.ScopeAll {
		return errors.New("you did not type all")
	}
	return nil
}
