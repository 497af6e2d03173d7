package main

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/display"
)

// caseMessageCmd is `amends case message`.
type caseMessageCmd struct {
	caseArg
	Message string `arg:"" help:"What the customer says."`
	keyFlag
	gatewayFlags
}

// AfterApply checks what was said.
func (c *caseMessageCmd) AfterApply() error {
	return checkAll(&c.caseArg, &c.keyFlag, &c.gatewayFlags)
}

// Run adds the message.
func (c *caseMessageCmd) Run(ctx context.Context, t *terminal) error {
	desk, err := c.desk()
	if err != nil {
		return err
	}
	key, err := c.choose(t)
	if err != nil {
		return err
	}
	got, err := desk.Message(ctx, deskclient.Message{Key: key, CaseID: c.Case, Message: c.Message, Customer: c.Customer})
	if err != nil {
		return underKey(key, err)
	}
	return t.showSent(c.JSON, "message", got, key)
}

// sent is the result for machines of a message or a cancel.
type sent struct {
	deskapi.AcceptedMessage
	Key string `json:"idempotency_key"`
}

// showSent tells that what was sent is stored, and under which key.
func (t *terminal) showSent(asJSON bool, what string, got deskapi.AcceptedMessage, key string) error {
	if asJSON {
		return t.writeJSON(sent{AcceptedMessage: got, Key: key})
	}
	fmt.Fprintf(t.out, "%s  %s %s\nidempotency key %s\n", display.Line(got.CaseID), what, display.Line(got.MessageID), key)
	return nil
}
