package main

import (
	"context"
	"errors"

	"github.com/amends-dev/amends/internal/custody"
)

// custodyShowCmd is `amends custody show`.
type custodyShowCmd struct {
	caseArg
	consoleFlags
}

// AfterApply checks what was said.
func (c *custodyShowCmd) AfterApply() error { return checkAll(&c.caseArg, &c.consoleFlags) }

// Run shows the case.
func (c *custodyShowCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	shown, packet, err := desk.Custody(ctx, c.Tenant, c.Case)
	if err != nil {
		return err
	}
	text := custody.Text(packet)
	if shown.PacketText != text || shown.PacketSHA256 != custody.SHA256(packet) {
		return errors.New("the console shows another text or hash than the packet it sent")
	}
	if c.JSON {
		return t.writeJSON(shown)
	}
	showCustody(t.out, shown, text)
	return nil
}
