package main

import (
	"context"
	"fmt"
	"io"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/display"
)

// caseDeliveriesCmd is `amends case deliveries`.
type caseDeliveriesCmd struct {
	caseArg
	gatewayFlags
}

// AfterApply checks what was said.
func (c *caseDeliveriesCmd) AfterApply() error { return checkAll(&c.caseArg, &c.gatewayFlags) }

// Run shows the deliveries.
func (c *caseDeliveriesCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	d, err := desk.Deliveries(ctx, c.Case, c.Customer)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.writeJSON(d)
	}
	showDeliveries(t.out, d)
	return nil
}

func showDeliveries(w io.Writer, d deskapi.Deliveries) {
	if len(d.Deliveries) == 0 {
		fmt.Fprintf(w, "%s  no webhooks\n", display.Line(d.CaseID))
		return
	}
	for _, one := range d.Deliveries {
		fmt.Fprintf(w, "reply of v%d (%s)  %s%s%s  %s\n", one.Version, display.Line(one.Kind), display.Line(one.Status),
			clock(" ", one.SettledAt), clock(", next try ", one.NextAt), display.Line(one.WebhookID))
		for _, a := range one.Attempts {
			fmt.Fprintf(w, "  %d  %-20s  %s", a.Number, clock("", a.At), display.Line(a.Reason))
			if a.StatusCode != 0 {
				fmt.Fprintf(w, " %d", a.StatusCode)
			}
			fmt.Fprintln(w)
		}
	}
}
