package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

func receive(t *testing.T, got func()) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got() }))
	t.Cleanup(s.Close)
	return s.URL
}

func nowStamp() *timestamppb.Timestamp { return timestamppb.New(time.Now()) }

func TestWebhookConfiguration(t *testing.T) {
	t.Parallel()
	file := secretFile(t, providerKey)
	hook := Webhook{URL: "https://hooks.example.com/amends", SecretFiles: []string{file}}
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"one", func(c *Config) { c.Channels[0].Webhook = hook }, ""},
		{"two channels", func(c *Config) { c.Channels[0].Webhook, c.Channels[2].Webhook = hook, hook }, ""},
		{"two tenants", func(c *Config) { c.Channels[0].Webhook, c.Channels[4].Webhook = hook, hook }, ""},
		{"twice", func(c *Config) { c.Channels[0].Webhook, c.Channels[1].Webhook = hook, hook }, "channels[1]: the channel has a webhook already"},
		{"no secret", func(c *Config) { c.Channels[0].Webhook = Webhook{URL: hook.URL} }, "webhook.secret_files: none"},
		{"no url", func(c *Config) { c.Channels[0].Webhook = Webhook{SecretFiles: hook.SecretFiles} }, "webhook.url: want https"},
		{"http", func(c *Config) { c.Channels[0].Webhook = hook; c.Channels[0].Webhook.URL = "http://hooks.example.com" }, "webhook.url: want https"},
		{"inside", func(c *Config) { c.Channels[0].Webhook = hook; c.Channels[0].Webhook.URL = "https://169.254.169.254/" }, "webhook.url: not a public address"},
		{"provider", func(c *Config) { c.Provider = Provider{SecretFiles: []string{file}, Tenants: []string{"acme-in"}} }, ""},
		{"provider of nobody", func(c *Config) { c.Provider = Provider{SecretFiles: []string{file}} }, "provider: want both"},
		{"provider without secret", func(c *Config) { c.Provider = Provider{Tenants: []string{"acme-in"}} }, "provider: want both"},
		{"provider of a bad tenant", func(c *Config) { c.Provider = Provider{SecretFiles: []string{file}, Tenants: []string{"a.>"}} }, "provider.tenants"},
	} {
		cfg := testConfig("127.0.0.1:1")
		c.change(&cfg)
		err := cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	cfg := testConfig("127.0.0.1:1")
	cfg.Channels[0].Webhook = hook
	cfg.Channels[0].Webhook.SecretFiles = []string{secretFile(t, "whsec_short")}
	if _, err := cfg.endpoints(quiet()); err == nil || strings.Contains(err.Error(), "short") {
		t.Errorf("a bad secret: %v", err)
	}
}
