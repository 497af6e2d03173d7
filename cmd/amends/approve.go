package main

import (
	"context"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// approveCmd is `amends approve`.
type approveCmd struct {
	signFlags
	Reason string `help:"Why; part of what is signed."`
}

// Run approves.
func (c *approveCmd) Run(ctx context.Context, t *terminal) error {
	return c.decide(ctx, t, amendsv1.Verdict_VERDICT_APPROVE, c.Reason)
}
