package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/ident"
)

// caseCmd is `amends case`.
type caseCmd struct {
	Post    casePostCmd    `cmd:"" help:"Open a case."`
	List    caseListCmd    `cmd:"" help:"List the customer's cases, newest first."`
	Show    caseShowCmd    `cmd:"" help:"Show a case."`
	Request caseRequestCmd `cmd:"" help:"Show all cases of one request."`
	Follow  caseFollowCmd  `cmd:"" help:"Follow a case until it is closed."`
	Message caseMessageCmd `cmd:"" help:"Add a message to a case."`
	Cancel  caseCancelCmd  `cmd:"" help:"Withdraw a case."`

	Deliveries caseDeliveriesCmd `cmd:"" help:"Show what became of a case's webhooks."`
}

// gatewayFlags say where the gateway is and who asks.
type gatewayFlags struct {
	Gateway   string `env:"AMENDS_GATEWAY_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Where the gateway is."`
	TokenFile string `required:"" env:"AMENDS_TOKEN_FILE" type:"path" placeholder:"FILE" help:"File with the channel's API key."`
	CAFile    string `name:"ca-file" env:"AMENDS_CA_FILE" type:"path" placeholder:"FILE" help:"Trust the certificate authorities in this file instead of the system's."`
	Customer  string `help:"Customer, where the channel names customers."`
	output
}

// AfterApply checks them.
func (f *gatewayFlags) AfterApply() error {
	if err := deskclient.CheckURL(f.Gateway); err != nil {
		return fmt.Errorf("--gateway: %w", err)
	}
	if f.Customer == "" {
		return nil
	}
	return ident.Tokens("--customer", f.Customer)
}

// desk gives the client they describe.
func (f *gatewayFlags) desk() (*deskclient.Gateway, error) {
	token, err := readToken(f.TokenFile)
	if err != nil {
		return nil, err
	}
	return deskclient.NewGateway(deskclient.Config{URL: f.Gateway, Token: token, CAFile: f.CAFile})
}

// caseArg names the case a command is about.
type caseArg struct {
	Case string `arg:"" help:"Case id."`
}

// AfterApply checks it.
func (a *caseArg) AfterApply() error { return ident.Tokens("case", a.Case) }

// keyFlag names a request, so that a retry of it is the same one.
type keyFlag struct {
	Key string `help:"Idempotency key; a retry repeats it. Default: a fresh random one, which is printed."`
}

// maxKey bounds an idempotency key.
const maxKey = 128

// AfterApply checks it.
func (f *keyFlag) AfterApply() error {
	if len(f.Key) > maxKey || strings.ContainsFunc(f.Key, func(c rune) bool { return c < '!' || c > '~' }) {
		return errors.New("--key: want up to 128 visible ASCII characters")
	}
	return nil
}

// choose gives the key that was said, or a fresh one.
func (f *keyFlag) choose(t *terminal) (string, error) {
	if f.Key != "" {
		return f.Key, nil
	}
	var b [16]byte
	if _, err := io.ReadFull(t.entropy, b[:]); err != nil {
		return "", fmt.Errorf("make an idempotency key: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// underKey tells the key of a request that went wrong: it may have been taken,
// and only the same key makes a retry safe.
func underKey(key string, err error) error { return fmt.Errorf("idempotency key %s: %w", key, err) }

// checkAll runs the checks of a command's parts in turn.
func checkAll(parts ...interface{ AfterApply() error }) error {
	for _, p := range parts {
		if err := p.AfterApply(); err != nil {
			return err
		}
	}
	return nil
}
