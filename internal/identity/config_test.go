package identity_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/identity"
)

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*identity.Config)
		want   string
	}{
		"good":              {func(*identity.Config) {}, ""},
		"this machine":      {func(c *identity.Config) { c.Issuer = "http://127.0.0.1:9999/oidc" }, ""},
		"no issuer":         {func(c *identity.Config) { c.Issuer = "" }, "issuer: want a URL"},
		"plain http":        {func(c *identity.Config) { c.Issuer = "http://login.example" }, "issuer: want https"},
		"credential in it":  {func(c *identity.Config) { c.Issuer = "https://me:secret@login.example" }, "issuer: want a URL"},
		"keys over http":    {func(c *identity.Config) { c.JWKSURL = "http://login.example/keys" }, "jwks_url"},
		"no audience":       {func(c *identity.Config) { c.Audiences = nil }, "audiences: none"},
		"empty audience":    {func(c *identity.Config) { c.Audiences = []string{""} }, "audiences: empty"},
		"empty party":       {func(c *identity.Config) { c.AuthorizedParties = []string{""} }, "authorized_parties: empty"},
		"none":              {func(c *identity.Config) { c.Algorithms = []string{"none"} }, `algorithms: "none"`},
		"shared secret":     {func(c *identity.Config) { c.Algorithms = []string{"RS256", "HS256"} }, `algorithms: "HS256"`},
		"leeway":            {func(c *identity.Config) { c.Leeway = 3 * time.Minute }, "leeway"},
		"negative leeway":   {func(c *identity.Config) { c.Leeway = -time.Second }, "leeway"},
		"restless":          {func(c *identity.Config) { c.Keys.Refresh = time.Millisecond }, "keys.refresh"},
		"younger than that": {func(c *identity.Config) { c.Keys.MaxAge = time.Second }, "keys.max_age"},
		"stale for weeks":   {func(c *identity.Config) { c.Keys.MaxStale = 400 * time.Hour }, "keys.max_stale"},
	} {
		cfg := identity.Config{Issuer: "https://login.example", Audiences: []string{"desk"}}
		c.change(&cfg)
		err := cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret@")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAuthoritiesAreRead(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".missing"} {
		_, err := identity.New(identity.Config{Issuer: "https://login.example", Audiences: []string{"desk"}, CAFile: file},
			identity.Deps{Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), "ca_file") {
			t.Errorf("%v", err)
		}
	}
}
