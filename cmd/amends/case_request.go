package main

import (
	"context"

	"github.com/amends-dev/amends/internal/ident"
)

// caseRequestCmd is `amends case request`.
type caseRequestCmd struct {
	Request string `arg:"" help:"Request id; that of its first case."`
	gatewayFlags
}

// AfterApply checks what was said.
func (c *caseRequestCmd) AfterApply() error {
	if err := c.gatewayFlags.AfterApply(); err != nil {
		return err
	}
	return ident.Tokens("request", c.Request)
}

// Run shows the cases, in the order they were made.
func (c *caseRequestCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	r, err := desk.Request(ctx, c.Request, c.Customer)
	if err != nil {
		return err
	}
	if c.JSON {
		return t.writeJSON(r)
	}
	for _, v := range r.Cases {
		showView(t.out, v)
	}
	return nil
}
