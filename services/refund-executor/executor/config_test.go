package executor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/services/refund-executor/executor"
)

const file = `
broker: {url: "nats://127.0.0.1:4222", seed_file: seed}
admin: {listen: "127.0.0.1:0"}
payments: {url: "http://127.0.0.1:8099", key_file: key}
approver_registry: approvers.yaml
`

func TestConfigIsStrict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"as documented":      {file, ""},
		"limits of its own":  {file + "limits: [{currency: JPY, approval_threshold: 1, second_threshold: 1, cap_tenant_hour: 1, cap_tenant_day: 1}]\n", ""},
		"no limits":          {file + "limits: []\n", ""},
		"unknown key":        {file + "treshold: 1\n", "treshold"},
		"no registry":        {strings.Replace(file, "approver_registry: approvers.yaml", "", 1), "approver_registry: missing"},
		"no key":             {strings.Replace(file, ", key_file: key", "", 1), "payments.key_file: missing"},
		"long call window":   {file + "call_window: 31s\n", "call_window"},
		"no call window":     {file + "call_window: 0s\n", "call_window"},
		"negative keys":      {strings.Replace(file, "key_file: key", "key_file: key, key_window: -1s", 1), "key_window"},
		"no such currency":   {file + "limits: [{currency: XXQ, approval_threshold: 1, second_threshold: 1, cap_tenant_hour: 1, cap_tenant_day: 1}]\n", "XXQ"},
		"thresholds swapped": {file + "limits: [{currency: INR, approval_threshold: 2, second_threshold: 1, cap_tenant_hour: 1, cap_tenant_day: 1}]\n", "second_threshold"},
		"no threshold":       {file + "limits: [{currency: INR, second_threshold: 1, cap_tenant_hour: 1, cap_tenant_day: 1}]\n", "approval_threshold"},
		"no caps":            {file + "limits: [{currency: INR, approval_threshold: 1, second_threshold: 1}]\n", "cap_tenant_hour"},
		"no workers":         {file + "workers: 0\n", "workers"},
	} {
		path := filepath.Join(t.TempDir(), "executor.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := executor.Defaults()
		_, err := boot.Load(path, nil, &cfg)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Without a registry or a key that can be read nothing starts.
func TestWithoutItsSecretsItDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := executor.Defaults()
	cfg.Payments.URL = "http://127.0.0.1:1"
	cfg.Payments.KeyFile, cfg.ApproverRegistry = filepath.Join(dir, "none"), filepath.Join(dir, "none")
	for _, step := range []struct{ name, text string }{{"approvers", "approvers: x"}, {"approvers", "version: '1'\n"}} {
		if err := executor.Run(context.Background(), cfg, executor.Deps{}); !errors.Is(err, boot.ErrConfig) {
			t.Errorf("started: %v", err)
		}
		cfg.ApproverRegistry = write(t, dir, step.name, []byte(step.text))
	}
	if err := executor.Run(context.Background(), cfg, executor.Deps{}); !errors.Is(err, boot.ErrConfig) {
		t.Errorf("started without a key: %v", err)
	}
}

func TestLocksTakeTurnsAndGiveUp(t *testing.T) {
	t.Parallel()
	var l executor.Locks
	unlock, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("waited for a taken key: %v", err)
	}
	unlock()
	again, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	again()
	if n := l.Held(); n != 0 {
		t.Errorf("%d keys are kept", n)
	}
}
