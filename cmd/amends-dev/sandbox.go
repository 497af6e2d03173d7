package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/sandbox"
)

// sandboxCmd is the payments sandbox: running it alone, and changing one that
// runs.
type sandboxCmd struct {
	Serve   sandboxServeCmd   `cmd:"" default:"withargs" help:"Run the payments sandbox alone; what sandbox does without a verb."`
	Faults  sandboxFaultsCmd  `cmd:"" help:"What goes wrong at a running sandbox."`
	Refund  sandboxRefundCmd  `cmd:"" help:"Say what became of a refund."`
	Capture sandboxCaptureCmd `cmd:"" help:"Say what became of a payment."`
}

// sandboxServeCmd runs the payments sandbox alone.
type sandboxServeCmd struct {
	Listen string `help:"Address to serve." default:"127.0.0.1:8090"`
	File   string `help:"Journal; made when it is not there." default:"sandbox.jsonl" type:"path"`
	Ledger string `help:"JSON ledger to merge at the start." type:"existingfile" optional:""`
	Sync   bool   `help:"Put every entry on the disk before it is answered."`
	Keys   string `help:"Directory with the API keys, a file for each scope; they are made when they are not there. Without it, every start has new ones." type:"path" placeholder:"DIR"`

	faultFlags

	EventsURL        string `help:"Where webhooks of changes are sent." optional:""`
	EventsSecretFile string `help:"Secret they are signed with, whsec_..." type:"existingfile" optional:""`
}

// Run serves until it is interrupted.
func (s sandboxServeCmd) Run(ctx context.Context, c *console) error {
	tokens := map[sandbox.Scope]string{}
	var keys []sandbox.Key
	for _, scope := range []sandbox.Scope{sandbox.ScopeVerifyOwner, sandbox.ScopeRead, sandbox.ScopeRefundWrite, sandbox.ScopeAdmin} {
		token, err := s.token(scope)
		if err != nil {
			return err
		}
		tokens[scope] = token
		keys = append(keys, sandbox.Key{Name: string(scope), Scope: scope, SHA256: sandbox.HashKey(tokens[scope])})
	}
	events, err := s.events(slog.New(c.log))
	if err != nil {
		return err
	}
	server, err := sandbox.Start(ctx, sandbox.Config{Listen: s.Listen, File: s.File, Sync: s.Sync, Keys: keys, Events: events, Faults: s.faults(), Now: time.Now, Log: slog.New(c.log)})
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

// token finds the key of a scope in its file, or makes it.
func (s sandboxServeCmd) token(scope sandbox.Scope) (string, error) {
	token := "trial-" + rand.Text()
	if s.Keys == "" {
		return token, nil
	}
	if err := os.MkdirAll(s.Keys, 0o700); err != nil {
		return "", fmt.Errorf("directory of the keys: %w", err)
	}
	file := filepath.Join(s.Keys, string(scope))
	kept, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return token, os.WriteFile(file, []byte(token), 0o600)
	}
	return strings.TrimSpace(string(kept)), err
}

func (s sandboxServeCmd) events(log *slog.Logger) (sandbox.Events, error) {
	if (s.EventsURL == "") != (s.EventsSecretFile == "") {
		return sandbox.Events{}, errors.New("--events-url and --events-secret-file go together")
	}
	if s.EventsURL == "" {
		return sandbox.Events{}, nil
	}
	secret, err := boot.ReadSecret(s.EventsSecretFile, log)
	return sandbox.Events{URL: s.EventsURL, Secret: string(secret)}, err
}

func (s sandboxServeCmd) seed(ctx context.Context, url, token string) error {
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
