package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/identity"
)

func TestConfigFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	text := `
broker: {url: "nats://127.0.0.1:4222", seed_file: /run/secrets/broker-gateway}
admin: {listen: "127.0.0.1:9100"}
redis: {addr: "127.0.0.1:6379"}
limits: {posts: {per_second: 5, burst: 7}}
channels:
  - {name: web, tenant: acme-in, key_sha256: ` + hashOf(webKey) + `, may_name_customer: true, may_name_case_ids: true}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Defaults()
	if _, err := boot.Load(file, []string{"AMENDS_LIMITS_STREAMS=9"}, &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Limits.Posts != (Rate{5, 7}) || cfg.Limits.Reads != Defaults().Limits.Reads || cfg.Limits.Streams != 9 || !cfg.Channels[0].MayNameCustomer || !cfg.Channels[0].MayNameCaseIDs {
		t.Errorf("%+v", cfg)
	}
	if err := os.WriteFile(file, []byte(text+"chanels: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boot.Load(file, nil, &cfg); err == nil {
		t.Error("an unknown key was accepted")
	}
}

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
		"no customer rate": {func(c *Config) { c.Limits.CustomerPosts = Rate{} }, "limits.customer_posts"},
		"no tenant burst":  {func(c *Config) { c.Limits.TenantReads.Burst = 0 }, "limits.tenant_reads"},
		"no cases":         {func(c *Config) { c.Limits.CasesInFlight = 0 }, "cases_in_flight"},
		"no room":          {func(c *Config) { c.Limits.InFlight = 0 }, "in_flight"},
		"no channels":      {func(c *Config) { c.Channels = nil }, "channels"},
		"tenant B55":       {func(c *Config) { c.Channels[0].Tenant = "acme.>" }, "channels[0]: tenant"},
		"every tenant":     {func(c *Config) { c.Channels[0].Tenant = "all" }, "channels[0]: tenant: not a valid identifier"},
		"login of all":     {aLogin(func(ch *Channel) { ch.Tenant = "all" }), "tenant: not a valid identifier"},
		"claim of all":     {aLogin(func(ch *Channel) { ch.Tenant, ch.OIDC.TenantClaim, ch.OIDC.Tenants = "", "tid", []string{"all"} }), "oidc.tenants: not a valid identifier"},
		"provider of all":  {func(c *Config) { c.Provider = Provider{SecretFiles: []string{"f"}, Tenants: []string{"all"}} }, "provider.tenants: not a valid identifier"},
		"no customer":      {func(c *Config) { c.Channels[0].Customer = "" }, "want either"},
		"both bindings":    {func(c *Config) { c.Channels[0].MayNameCustomer = true }, "want either"},
		"customer B55":     {func(c *Config) { c.Channels[0].Customer = "*" }, "customer"},
		"desk's customer":  {func(c *Config) { c.Channels[0].Customer = "_desk" }, "channels[0]: customer"},
		"desk's channel":   {func(c *Config) { c.Channels[0].Name = "_desk" }, "channels[0]: name"},
		"short hash":       {func(c *Config) { c.Channels[0].KeySHA256 = "ab" }, "key_sha256"},
		"plain key":        {func(c *Config) { c.Channels[0].KeySHA256 = webKey }, "key_sha256"},
		"upper-case hash":  {func(c *Config) { c.Channels[0].KeySHA256 = strings.ToUpper(hashOf(webKey)) }, "key_sha256"},
		"one key, two use": {func(c *Config) { c.Channels[1].KeySHA256 = c.Channels[0].KeySHA256 }, "channels[1]: key_sha256"},
		"two credentials":  {func(c *Config) { c.Channels[0].OIDC = goodOIDC() }, "want either key_sha256 or oidc"},
		"no credential":    {func(c *Config) { c.Channels[0].KeySHA256 = "" }, "want either key_sha256 or oidc"},
		"no audience":      {aLogin(func(ch *Channel) { ch.OIDC.Audiences = nil }), "audiences: none"},
		"shared secrets":   {aLogin(func(ch *Channel) { ch.OIDC.Algorithms = []string{"HS256"} }), "algorithms"},
		"login's customer": {aLogin(func(ch *Channel) { ch.Customer = "cust_5519" }), "a token names its customer"},
		"login names any":  {aLogin(func(ch *Channel) { ch.MayNameCustomer = true }), "a token names its customer"},
		"login, no tenant": {aLogin(func(ch *Channel) { ch.Tenant = "" }), "want either tenant or oidc.tenant_claim"},
		"any tenant":       {aLogin(func(ch *Channel) { ch.Tenant, ch.OIDC.TenantClaim = "", "tid" }), "oidc.tenants"},
		"tenants unused":   {aLogin(func(ch *Channel) { ch.OIDC.Tenants = []string{"acme-in"} }), "oidc.tenants"},
		"wild tenant B55":  {aLogin(func(ch *Channel) { ch.Tenant, ch.OIDC.TenantClaim, ch.OIDC.Tenants = "", "tid", []string{"*"} }), "oidc.tenants"},
		"no claim's value": {aLogin(func(ch *Channel) { ch.OIDC.RequiredClaims = map[string]string{"tid": ""} }), "required_claims"},
		"two scopes":       {aLogin(func(ch *Channel) { ch.OIDC.RequiredScope = "a b" }), "required_scope"},
		"one token, two channels": {func(c *Config) {
			aLogin(func(*Channel) {})(c)
			aLogin(func(ch *Channel) { ch.Name = "other" })(c)
		}, "same issuer for the same audience"},
	} {
		cfg := testConfig("127.0.0.1:6379")
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func goodOIDC() *OIDC {
	return &OIDC{Config: identity.Config{Issuer: "https://login.example", Audiences: []string{"desk"}}}
}

// aLogin adds a channel with an issuer, changed.
func aLogin(change func(*Channel)) func(*Config) {
	return func(c *Config) {
		ch := Channel{Name: "login", Tenant: "acme-in", OIDC: goodOIDC()}
		change(&ch)
		c.Channels = append(c.Channels, ch)
	}
}
