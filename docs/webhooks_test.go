package docs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/webhook"
)

// guide is the page of webhooks and a webhook to try its examples on.
type guide struct {
	text   string
	secret string
	body   []byte
	header http.Header
}

func webhookGuide(t *testing.T) guide {
	t.Helper()
	text, err := os.ReadFile("webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	g := guide{text: string(text), secret: webhook.FormatSecret(bytes.Repeat([]byte{0, 10, 255, 7}, 8)), body: []byte("{\"text\":\"₹2,000\"}")}
	keys, err := webhook.ParseSecrets(webhook.FormatSecret(bytes.Repeat([]byte{1}, 24)), g.secret) // as in a rotation
	if err != nil {
		t.Fatal(err)
	}
	if g.header, err = keys.Sign("msg_1", time.Now(), g.body); err != nil {
		t.Fatal(err)
	}
	return g
}

// block gives the one code block of a language.
func (g guide) block(t *testing.T, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(g.text, -1)
	if len(found) != 1 {
		t.Fatalf("%d blocks of %s, want 1", len(found), language)
	}
	return found[0][1]
}

func TestRetryScheduleIsTheCodes(t *testing.T) {
	t.Parallel()
	g := webhookGuide(t)
	var table strings.Builder
	for i, d := range webhook.Schedule() {
		text := d.String()
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(text, zero) {
				text = text[:len(text)-2]
			}
		}
		fmt.Fprintf(&table, "| %d | %s |\n", i+1, text)
	}
	if !strings.Contains(g.text, "| after failure | wait |\n|---|---|\n"+table.String()+"\n") {
		t.Errorf("the table is not\n%s", table.String())
	}
	if words := []string{7: "seven", 8: "eight"}; !strings.Contains(g.text, "tried "+words[webhook.Attempts()]+" times") {
		t.Errorf("it is tried %d times", webhook.Attempts())
	}
}

// The Go example is built, run, and told right webhooks from wrong ones.
func TestGoReceiver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a program")
	}
	g := webhookGuide(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": g.block(t, "go"), "go.mod": "module receiver\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "receiver")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	run := exec.CommandContext(ctx, program)
	run.Env = append(os.Environ(), "WEBHOOK_SECRET="+g.secret, "LISTEN="+at)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = run.Wait() // it was killed
	})
	client := webhook.NewClient(webhook.Options{Private: true})
	t.Cleanup(client.Close)
	send := func(h http.Header, body []byte) int {
		return client.Send(t.Context(), "http://"+at+"/amends", h, body).Status
	}
	deadline := time.After(20 * time.Second)
	for send(g.header, g.body) == 0 {
		select {
		case <-deadline:
			t.Fatal("the receiver does not answer")
		case <-time.After(20 * time.Millisecond):
		}
	}
	stale := g.header.Clone()
	stale.Set(webhook.HeaderTimestamp, "1")
	bare := g.header.Clone()
	bare.Del(webhook.HeaderTimestamp)
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
		want   int
	}{
		"as sent": {g.header, g.body, 204}, "another body": {g.header, append([]byte(" "), g.body...), 401},
		"an old timestamp": {stale, g.body, 401}, "no timestamp": {bare, g.body, 401}, "nothing": {nil, g.body, 401},
	} {
		if got := send(c.header, c.body); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestShellSignature(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "openssl", "base64", "od"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here", tool)
		}
	}
	g := webhookGuide(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "body.json"), g.body, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", g.block(t, "sh"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+g.secret, "WEBHOOK_ID="+g.header.Get(webhook.HeaderID), "WEBHOOK_TIMESTAMP="+g.header.Get(webhook.HeaderTimestamp))
	out, err := cmd.Output()
	if want := strings.Fields(g.header.Get(webhook.HeaderSignature))[1]; err != nil || "v1,"+strings.TrimSpace(string(out)) != want {
		t.Errorf("%q, %v; want %s", out, err, want)
	}
}

func TestPythonVerification(t *testing.T) {
	t.Parallel()
	if exec.Command("python3", "-c", "''.removeprefix('')").Run() != nil {
		t.Skip("no Python here")
	}
	g := webhookGuide(t)
	script := g.block(t, "python") + `
import os, sys
headers = {"webhook-id": os.environ["ID"], "webhook-timestamp": os.environ["STAMP"], "webhook-signature": os.environ["SIGNATURE"]}
body = sys.stdin.buffer.read()
secret = os.environ["WEBHOOK_SECRET"]
print(verify(secret, headers, body), verify(secret, headers, body + b" "), verify(secret, headers, body, now=1))
`
	cmd := exec.CommandContext(t.Context(), "python3", "-c", script)
	cmd.Stdin = bytes.NewReader(g.body)
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+g.secret, "ID="+g.header.Get(webhook.HeaderID),
		"STAMP="+g.header.Get(webhook.HeaderTimestamp), "SIGNATURE="+g.header.Get(webhook.HeaderSignature))
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "True False False" {
		t.Errorf("%q, %v", out, err)
	}
}
