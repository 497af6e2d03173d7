package gateway

import (
	"strings"
	"testing"
)

func TestConfigIsCheckedAsAWhole(t *testing.T) {
	t.Parallel()
	good := testConfig("127.0.0.1:6379")
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no listener":      {func(c *Config) { c.Listen = "" }, "listen"},
		"no redis":         {func(c *Config) { c.Redis.Addr = "" }, "redis.addr"},
		"no rate":          {func(c *Config) { c.Limits.Posts.PerSecond = 0 }, "limits.posts"},
		"no burst":         {func(c *Config) { c.Limits.Reads.Burst = 0 }, "limits.reads"},
		"no room":          {func(c *Config) { c.Limits.InFlight = 0 }, "in_flight"},
		"no channels":      {func(c *Config) { c.Channels = nil }, "channels"},
		"tenant B55":       {func(c *Config) { c.Channels[0].Tenant = "acme.>" }, "channels[0]: tenant"},
		"no customer":      {func(c *Config) { c.Channels[0].Customer = "" }, "want either"},
		"both bindings":    {func(c *Config) { c.Channels[0].MayNameCustomer = true }, "want either"},
		"customer B55":     {func(c *Config) { c.Channels[0].Customer = "*" }, "customer"},
		"short hash":       {func(c *Config) { c.Channels[0].KeySHA256 = "ab" }, "key_sha256"},
		"plain key":        {func(c *Config) { c.Channels[0].KeySHA256 = webKey }, "key_sha256"},
		"upper-case hash":  {func(c *Config) { c.Channels[0].KeySHA256 = strings.ToUpper(hashOf(webKey)) }, "key_sha256"},
		"one key, two use": {func(c *Config) { c.Channels[1].KeySHA256 = c.Channels[0].KeySHA256 }, "channels[1]: key_sha256"},
	} {
		cfg := testConfig("127.0.0.1:6379")
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
