package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/sandbox"
)

// sandboxCmd runs the payments sandbox alone.
type sandboxCmd struct {
	Listen string `help:"Address to serve." default:"127.0.0.1:8090"`
	File   string `help:"Journal; made when it is not there." default:"sandbox.jsonl" type:"path"`
	Ledger string `help:"JSON ledger to merge at the start." type:"existingfile" optional:""`
	Sync   bool   `help:"Put every entry on the disk before it is answered."`

	EventsURL        string `help:"Where webhooks of changes are sent." optional:""`
	EventsSecretFile string `help:"Secret they are signed with, whsec_..." type:"existingfile" optional:""`
}

// Run serves until it is interrupted.
func (s sandboxCmd) Run(ctx context.Context, c *console) error {
	tokens := map[sandbox.Scope]string{}
	var keys []sandbox.Key
	for _, scope := range []sandbox.Scope{sandbox.ScopeVerifyOwner, sandbox.ScopeRead, sandbox.ScopeRefundWrite, sandbox.ScopeAdmin} {
		tokens[scope] = "trial-" + rand.Text()
		keys = append(keys, sandbox.Key{Name: string(scope), Scope: scope, SHA256: sandbox.HashKey(tokens[scope])})
	}
	events, err := s.events(slog.New(c.log))
	if err != nil {
		return err
	}
	server, err := sandbox.Start(ctx, sandbox.Config{Listen: s.Listen, File: s.File, Sync: s.Sync, Keys: keys, Events: events, Now: time.Now, Log: slog.New(c.log)})
	if err != nil {
		return err
	}
	if s.Ledger != "" {
		if err := s.seed(ctx, server.URL, tokens[sandbox.ScopeAdmin]); err != nil {
			return err
		}
	}
	c.printf("Payments sandbox on %s (journal %s, OpenAPI at /openapi.yaml)\n", server.URL, s.File)
	for _, k := range keys {
		c.printf("  %-13s key  %s\n", k.Scope, tokens[k.Scope])
	}
	c.printf("Interrupt to stop.\n")
	<-ctx.Done()
	return server.Close()
}

func (s sandboxCmd) events(log *slog.Logger) (sandbox.Events, error) {
	if (s.EventsURL == "") != (s.EventsSecretFile == "") {
		return sandbox.Events{}, errors.New("--events-url and --events-secret-file go together")
	}
	if s.EventsURL == "" {
		return sandbox.Events{}, nil
	}
	secret, err := boot.ReadSecret(s.EventsSecretFile, log)
	return sandbox.Events{URL: s.EventsURL, Secret: string(secret)}, err
}

func (s sandboxCmd) seed(ctx context.Context, url, token string) error {
	data, err := os.ReadFile(s.Ledger)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	var l sandbox.Ledger
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	return sandbox.NewAdmin(url, token).Load(ctx, l)
}
