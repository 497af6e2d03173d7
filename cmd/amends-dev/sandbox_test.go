package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

func TestSandboxVerbs(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	l := sandboxtest.Duplicate()
	l.Refunds = []sandbox.Refund{{RefundID: "rf_1", PaymentID: "pay_8472_b", AmountMinor: 1, Currency: "INR", Status: "pending"}}
	s.Load(t, l)
	key := filepath.Join(t.TempDir(), "admin")
	if err := os.WriteFile(key, []byte(sandboxtest.AdminKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := run(append(append([]string{"sandbox"}, args...), "--url", s.URL+"/", "--key-file", key), &out, &errs)
		if code != want {
			t.Errorf("%v: code %d, %s", args, code, errs.String())
		}
		return out.String() + errs.String()
	}
	if got := do(0, "faults", "list"); got != "no faults\n" {
		t.Errorf("list: %s", got)
	}
	if got := do(0, "faults", "set", "outage,on=reads+writes,times=2", "delay,for=90s,payment=none"); got !=
		"struck  fault\n0 of 2  outage,on=reads+writes,times=2\n0       delay,payment=none,for=1m30s\n" {
		t.Errorf("set: %s", got)
	}
	var shown struct{ Faults sandbox.Faults }
	if err := json.Unmarshal([]byte(do(0, "faults", "list", "--json")), &shown); err != nil || len(shown.Faults) != 2 || shown.Faults[0].Times != 2 {
		t.Errorf("list: %+v, %v", shown, err)
	}
	// A mistake is told before anything is sent.
	if got := do(2, "faults", "set", "outage", "delay"); !strings.Contains(got, "delay needs for, e.g. delay,for=3s") || len(s.Faults()) != 2 {
		t.Errorf("a mistake: %s", got)
	}
	if got := do(0, "faults", "clear", "--json"); strings.Join(strings.Fields(got), "") != `{"faults":[]}` {
		t.Errorf("clear: %s", got)
	}
	if got := do(0, "refund", "rf_1", "failed"); got != "refund rf_1 is failed\n" {
		t.Errorf("refund: %s", got)
	}
	if got := do(0, "capture", "pay_8472_a", "expired"); got != "payment pay_8472_a is expired\n" {
		t.Errorf("capture: %s", got)
	}
	if now := s.Ledger(t); now.Refunds[0].Status != "failed" || now.Captures[0].Status != "expired" {
		t.Errorf("ledger %+v", now)
	}
	if got := do(1, "refund", "rf_2", "failed"); !strings.Contains(got, "refund_not_found") {
		t.Errorf("an unknown refund: %s", got)
	}
	if got := do(1, "capture", "pay_8472_a", "settled", "--tenant", "globex", "--json"); !strings.Contains(got, "payment_not_found") {
		t.Errorf("another tenant's payment: %s", got)
	}
}

func TestFaultKindsAreListed(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"sandbox", "faults", "kinds"}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	for _, k := range sandbox.FaultKinds() {
		if !strings.Contains(out.String(), k.Example) {
			t.Errorf("%s is not listed", k.Kind)
		}
	}
	for _, args := range [][]string{{"sandbox", "--fault", "gremlins"}, {"sandbox", "serve", "--fault", "delay"}, {"up", "--fault", "outage,on=webhooks"}} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs); code != 2 || !strings.Contains(errs.String(), "--fault") {
			t.Errorf("%v: code %d, %s", args, code, errs.String())
		}
	}
}

// Keys of a directory are found again; without one every start has new ones.
func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	s := sandboxServeCmd{Keys: filepath.Join(t.TempDir(), "keys")}
	first, err := s.token(sandbox.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.token(sandbox.ScopeAdmin)
	if err != nil || again != first {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
	if other, err := s.token(sandbox.ScopeRead); err != nil || other == first {
		t.Errorf("another scope: %q, %v", other, err)
	}
	if info, err := os.Stat(filepath.Join(s.Keys, "admin")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if fresh, err := (sandboxServeCmd{}).token(sandbox.ScopeAdmin); err != nil || fresh == first {
		t.Errorf("%q, %v", fresh, err)
	}
}
