package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/amends-dev/amends/internal/deskapi"
)

// caseFollowCmd is `amends case follow`.
type caseFollowCmd struct {
	caseArg
	After uint64 `help:"Leave out versions up to this one."`
	gatewayFlags
}

// AfterApply checks what was said.
func (c *caseFollowCmd) AfterApply() error { return checkAll(&c.caseArg, &c.gatewayFlags) }

// Run shows each version once, until the case is closed; for machines, each
// view on a line of its own.
func (c *caseFollowCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	seen := c.After
	lines := json.NewEncoder(t.out)
	return desk.Follow(ctx, c.Case, c.Customer, c.After, func(v deskapi.View) error {
		if c.JSON {
			if err := lines.Encode(v); err != nil {
				return fmt.Errorf("write a view: %w", err)
			}
			return nil
		}
		showSince(t.out, v, seen)
		showNext(t.out, v)
		seen = v.Version
		return nil
	})
}
