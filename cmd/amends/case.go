package main

import (
	"fmt"

	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/ident"
)

// caseCmd is `amends case`.
type caseCmd struct {
	Show caseShowCmd `cmd:"" help:"Show a case."`
}

// gatewayFlags say where the gateway is and who asks.
type gatewayFlags struct {
	Gateway   string `env:"AMENDS_GATEWAY_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Where the gateway is."`
	TokenFile string `required:"" env:"AMENDS_TOKEN_FILE" type:"path" placeholder:"FILE" help:"File with the channel's API key."`
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
