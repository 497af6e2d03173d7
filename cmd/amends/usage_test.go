package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	dir, _ := files(t)
	token := filepath.Join(dir, "token")
	out := filepath.Join(dir, "new.key")
	show := func(more ...string) []string { return append([]string{"case", "show", "--token-file", token}, more...) }
	on := func(verb string, more ...string) []string {
		return append([]string{"case", verb, "--token-file", token}, more...)
	}
	decide := func(more ...string) []string { return decideArgs("approve", dir, "http://127.0.0.1:1", more...) }
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no verb":         {[]string{"refund"}, "unexpected argument refund"},
		"no flags":        {[]string{"approve"}, "missing flags"},
		"no tenant":       {[]string{"approve", "req-1", "--key", "k"}, "missing flags"},
		"unknown flag":    {show("--nope"), "unknown flag --nope"},
		"case":            {show("../x"), "case: not a valid identifier"},
		"empty case":      {show(""), "case: not a valid identifier"},
		"customer":        {show("req-1", "--customer", "a b"), "--customer: not a valid identifier"},
		"followed case":   {on("follow", "req.1"), "case: not a valid identifier"},
		"messaged case":   {on("message", "req.1", "m"), "case: not a valid identifier"},
		"cancelled case":  {on("cancel", "req.1"), "case: not a valid identifier"},
		"no message":      {on("message", "req-1"), "expected \"<message>\""},
		"named case":      {on("post", "m", "--case-id", "8472.>"), "--case-id: not a valid identifier"},
		"spaced key":      {on("post", "m", "--key", "a b"), "--key: want"},
		"long key":        {on("message", "req-1", "m", "--key", strings.Repeat("k", 129)), "--key: want"},
		"cancel's key":    {on("cancel", "req-1", "--key", "ké"), "--key: want"},
		"gateway":         {show("req-1", "--gateway", "127.0.0.1:8080"), "--gateway: address"},
		"decided case":    {[]string{"approve", "req.1", "--tenant", "acme-in", "--key", "k", "--token-file", token}, "case: not a valid identifier"},
		"tenant":          {decide("--tenant", "acme.*"), "--tenant: not a valid identifier"},
		"console":         {decide("--console", "ftp://x"), "--console: address"},
		"wait of nothing": {decide("--wait", "0s"), "--wait: want"},
		"endless wait":    {decide("--wait", "11m"), "--wait: want"},
		"stop of what":    {[]string{"stop", "--reason", "r", "--token-file", token}, "missing flags: --tenant=STRING or --all"},
		"stop of both":    {[]string{"stop", "--reason", "r", "--token-file", token, "--all", "--tenant", "acme-in"}, "can't be used together"},
		"stop of a group": {[]string{"stop", "--reason", "r", "--token-file", token, "--tenant", "acme.*"}, "--tenant: not a valid identifier"},
		"tenant all":      {[]string{"resume", "--reason", "r", "--token-file", token, "--tenant", "all"}, "--tenant: say --all"},
		"no reason":       {[]string{"stop", "--all", "--token-file", token}, "missing flags: --reason"},
		"blank reason":    {[]string{"resume", "--all", "--reason", " ", "--token-file", token}, "--reason: want"},
		"long reason":     {[]string{"stop", "--all", "--reason", strings.Repeat("r", 257), "--token-file", token}, "--reason: want"},
		"stop's console":  {[]string{"stops", "--token-file", token, "--console", "ftp://x"}, "--console: address"},
		"compared tenant": {[]string{"reconcile", "--tenant", "acme.*", "--token-file", token}, "--tenant: not a valid identifier"},
		"patience":        {[]string{"reconcile", "--tenant", "acme-in", "--timeout", "2h", "--token-file", token}, "--timeout: want"},
		"approver":        {[]string{"approver", "new", "--id", "ma ya", "--key-id", "k", "--out", out}, "--id: not a valid identifier"},
		"key id":          {[]string{"approver", "new", "--id", "maya", "--key-id", "", "--out", out}, "--key-id: not a valid identifier"},
	} {
		got := amends(t, nil, c.args...)
		if got.code != exitUsage || got.out != "" || !strings.HasPrefix(got.err, "amends: ") || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
		got = amends(t, nil, append(slices.Clone(c.args), "--json")...)
		var said struct{ Error string }
		if err := json.Unmarshal([]byte(got.err), &said); err != nil || got.code != exitUsage || got.out != "" || !strings.Contains(said.Error, c.want) {
			t.Errorf("%s, for machines: %+v", name, got)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a key was made")
	}
	if got := amends(t, nil); got.code != exitUsage {
		t.Errorf("nothing: %+v", got)
	}
	if got := amends(t, nil, "--help"); got.code != exitDone || !strings.Contains(got.out, "approve") {
		t.Errorf("help: %+v", got)
	}
}

// Of a tenant and all one is said, and the usage says so.
func TestUsageOfTheStopNamesOneScope(t *testing.T) {
	t.Parallel()
	for verb, args := range map[string][]string{"stop": {"stop", "--help"}, "resume": {"resume", "--help"}, "stop ": {"--help"}, "resume ": {"--help"}} {
		want := "amends " + strings.TrimSpace(verb) + " (--tenant=STRING | --all) --reason=STRING --token-file=FILE [flags]\n"
		if args[0] == "--help" {
			want = "  " + strings.TrimPrefix(want, "amends ")
		}
		if got := amends(t, nil, args...); got.code != exitDone || !strings.Contains(got.out, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestMachineReadable(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"case show --json req-1": true, "--json=true": true, "": false, "--json=false": false, "-- --json": false, "--reason=--json": false,
	} {
		if got := machineReadable(strings.Fields(args)); got != want {
			t.Errorf("%q: %t", args, got)
		}
	}
}

func TestDevNullIsNoTerminal(t *testing.T) {
	t.Parallel()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) {
		t.Error("nobody answers there")
	}
}
