package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/display"
)

// custodyListCmd is `amends custody list`.
type custodyListCmd struct {
	consoleFlags
	Queue  string `enum:"handoff,reconciliation,approval" default:"handoff" help:"Which queue: ${enum}."`
	Limit  int    `default:"20" help:"Cases on a page, 1 to 100."`
	Cursor string `help:"Where to go on; the list before told it."`
}

// Run lists a page of the queue.
func (c *custodyListCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	page, err := desk.Queue(ctx, c.Tenant, c.Queue, c.Cursor, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.writeJSON(page)
	}
	return showQueue(t, c.Queue, page)
}

func showQueue(t *terminal, queue string, page deskapi.Queue) error {
	if len(page.Cases) == 0 && page.Next == "" {
		fmt.Fprintf(t.out, "nothing waits in the queue %s\n", queue)
		return nil
	}
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "case\torder\tsince\tcustodian\treason")
	for _, q := range page.Cases {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", display.Line(q.CaseID), orNone(display.Line(q.OrderID)), q.Since.UTC().Format(time.RFC3339),
			orNone(display.Line(q.Custodian)), display.Line(q.Reason))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	if page.Next != "" {
		fmt.Fprintf(t.out, "more: --cursor %s\n", display.Line(page.Next))
	}
	return nil
}
