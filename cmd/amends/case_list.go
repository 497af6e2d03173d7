package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
)

// caseListCmd is `amends case list`.
type caseListCmd struct {
	Limit  int    `default:"20" help:"Cases to show, up to 100."`
	Cursor string `help:"Where to go on, as the list before told."`
	State  string `help:"Only cases in this state, e.g. AWAITING_APPROVAL."`
	gatewayFlags
}

// maxList bounds a list.
const maxList = 100

// AfterApply checks what was said.
func (c *caseListCmd) AfterApply() error {
	if c.Limit < 1 || c.Limit > maxList {
		return errors.New("--limit: want 1 to 100")
	}
	return c.gatewayFlags.AfterApply()
}

// Run lists the cases.
func (c *caseListCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	list, err := desk.Cases(ctx, deskclient.List{Customer: c.Customer, Limit: c.Limit, Cursor: c.Cursor, State: c.State})
	if err != nil {
		return err
	}
	if c.JSON {
		return t.writeJSON(list)
	}
	for _, s := range list.Cases {
		fmt.Fprintf(t.out, "%s  %s  v%d", display.Line(s.CaseID), display.Line(s.State), s.Version)
		if s.OrderID != "" {
			fmt.Fprintf(t.out, "  order %s", display.Line(s.OrderID))
		}
		fmt.Fprintf(t.out, "%s\n", clock("  opened ", s.OpenedAt))
	}
	if list.Next != "" {
		fmt.Fprintf(t.out, "more with --cursor %s\n", display.Line(list.Next))
	}
	return nil
}
