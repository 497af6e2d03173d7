package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/amends-dev/amends/internal/display"
)

// stopsCmd is `amends stops`.
type stopsCmd struct{ staffFlags }

// Run shows the switches.
func (c *stopsCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	seen, err := desk.Stops(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.writeJSON(seen)
	}
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "scope\tstate\tsince\tby\treason")
	for _, s := range seen.Stops {
		state := "running"
		switch {
		case s.Unreadable:
			state = "STOPPED (unreadable)"
		case s.Stopped:
			state = "STOPPED"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", display.Line(s.Scope), state, orNone(clock("", s.At)), orNone(display.Line(s.By)), orNone(display.Line(s.Reason)))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	return nil
}
