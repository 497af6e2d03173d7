package main

import (
	"context"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// denyCmd is `amends deny`.
type denyCmd struct {
	signFlags
	Reason string `required:"" help:"Why; part of what is signed."`
}

// Run denies.
func (c *denyCmd) Run(ctx context.Context, t *terminal) error {
	return c.decide(ctx, t, amendsv1.Verdict_VERDICT_DENY, c.Reason)
}
