package main

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
	"github.com/amends-dev/amends/internal/ident"
)

// casePostCmd is `amends case post`.
type casePostCmd struct {
	Message string `arg:"" help:"What the customer says."`
	CaseID  string `name:"case-id" help:"Id of the new case, where the channel names cases."`
	keyFlag
	gatewayFlags
}

// AfterApply checks what was said.
func (c *casePostCmd) AfterApply() error {
	if err := checkAll(&c.keyFlag, &c.gatewayFlags); err != nil || c.CaseID == "" {
		return err
	}
	return ident.Tokens("--case-id", c.CaseID)
}

// posted is the result for machines.
type posted struct {
	deskapi.Accepted
	Key string `json:"idempotency_key"`
}

// Run posts the case.
func (c *casePostCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	key, err := c.choose(t)
	if err != nil {
		return err
	}
	got, err := desk.Post(ctx, deskclient.Post{Key: key, Message: c.Message, CaseID: c.CaseID, Customer: c.Customer})
	if err != nil {
		return underKey(key, err)
	}
	if c.JSON {
		return t.writeJSON(posted{Accepted: got, Key: key})
	}
	fmt.Fprintf(t.out, "%s  %s\nidempotency key %s\n", display.Line(got.CaseID), display.Line(got.State), key)
	return nil
}
