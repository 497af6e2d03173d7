package main

import (
	"fmt"

	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/ident"
)

// staffFlags say where the console is and who asks.
type staffFlags struct {
	Console   string `env:"AMENDS_CONSOLE_URL" default:"http://127.0.0.1:8081" placeholder:"URL" help:"Where the console is."`
	TokenFile string `required:"" env:"AMENDS_TOKEN_FILE" type:"path" placeholder:"FILE" help:"File with your staff token."`
	CAFile    string `name:"ca-file" env:"AMENDS_CA_FILE" type:"path" placeholder:"FILE" help:"Trust the certificate authorities in this file instead of the system's."`
	output
}

// AfterApply checks them.
func (f *staffFlags) AfterApply() error {
	if err := deskclient.CheckURL(f.Console); err != nil {
		return fmt.Errorf("--console: %w", err)
	}
	return nil
}

// desk gives the client they describe.
func (f *staffFlags) desk() (*deskclient.Console, error) {
	token, err := readToken(f.TokenFile)
	if err != nil {
		return nil, err
	}
	return deskclient.NewConsole(deskclient.Config{URL: f.Console, Token: token, CAFile: f.CAFile})
}

// consoleFlags also say whose case it is about.
type consoleFlags struct {
	Tenant string `required:"" env:"AMENDS_TENANT" help:"Tenant of the case."`
	staffFlags
}

// AfterApply checks them.
func (f *consoleFlags) AfterApply() error {
	if err := ident.Tokens("--tenant", f.Tenant); err != nil {
		return err
	}
	return f.staffFlags.AfterApply()
}
