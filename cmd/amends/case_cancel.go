package main

import (
	"context"

	"github.com/amends-dev/amends/internal/deskclient"
)

// caseCancelCmd is `amends case cancel`.
type caseCancelCmd struct {
	caseArg
	keyFlag
	gatewayFlags
}

// AfterApply checks what was said.
func (c *caseCancelCmd) AfterApply() error {
	return checkAll(&c.caseArg, &c.keyFlag, &c.gatewayFlags)
}

// Run withdraws the case. Done means that the withdrawal is stored; how the case
// ends, show and follow tell.
func (c *caseCancelCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	key, err := c.choose(t)
	if err != nil {
		return err
	}
	got, err := desk.Cancel(ctx, deskclient.Cancel{Key: key, CaseID: c.Case, Customer: c.Customer})
	if err != nil {
		return underKey(key, err)
	}
	return t.showSent(c.JSON, "cancel", got, key)
}
