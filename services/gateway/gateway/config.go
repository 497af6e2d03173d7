package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/subject"
)

// Config is the gateway's configuration.
type Config struct {
	boot.Common `yaml:",inline"`
	// Listen is host:port of the customer API; port 0 takes a free one.
	Listen string   `yaml:"listen"`
	TLS    edge.TLS `yaml:"tls,omitempty"`
	// Redis is where the shared rate limits are counted and the read model is.
	Redis    readmodel.Access `yaml:"redis"`
	Limits   Limits           `yaml:"limits"`
	Channels []Channel        `yaml:"channels"`
	Provider Provider         `yaml:"provider"`
}

// Limits bound what is taken on.
type Limits struct {
	// Posts and Reads apply to each tenant's channel, over all gateways;
	// messages and cancels count as posts. The others apply to each customer
	// of a tenant, and to each tenant, over all channels.
	Posts         Rate `yaml:"posts"`
	Reads         Rate `yaml:"reads"`
	CustomerPosts Rate `yaml:"customer_posts"`
	CustomerReads Rate `yaml:"customer_reads"`
	TenantPosts   Rate `yaml:"tenant_posts"`
	TenantReads   Rate `yaml:"tenant_reads"`
	// CasesInFlight is how much may wait or be handled in the desk, of all
	// tenants, before new cases are refused.
	CasesInFlight int `yaml:"cases_in_flight"`
	// InFlight bounds the requests and Streams the followers of this process.
	InFlight int `yaml:"in_flight"`
	Streams  int `yaml:"streams"`
	// RedisTimeout is how long a limit waits for Redis before this process counts
	// by itself for a while.
	RedisTimeout time.Duration `yaml:"redis_timeout"`
}

// Rate is a number of requests a second and how many may come at once.
type Rate struct {
	PerSecond int `yaml:"per_second"`
	Burst     int `yaml:"burst"`
}

// Channel is one credential of a customer channel, a key or an issuer of
// tokens, and what it may say. Two entries of one tenant and name are two
// credentials of one channel.
type Channel struct {
	Name string `yaml:"name"`
	// Tenant is the channel's; a channel with OIDC may leave it to a claim.
	Tenant string `yaml:"tenant"`
	// KeySHA256 is the lower-case hex SHA-256 of the channel's API key.
	KeySHA256 string `yaml:"key_sha256,omitempty"`
	// OIDC lets customers in with tokens of their issuer.
	OIDC *OIDC `yaml:"oidc,omitempty"`
	// Customer binds a key to one customer. Otherwise MayNameCustomer lets it
	// name one per request, in X-Customer-Id.
	Customer        string `yaml:"customer"`
	MayNameCustomer bool   `yaml:"may_name_customer"`
	// MayNameCaseIDs lets it choose case ids; for demonstrations.
	MayNameCaseIDs bool    `yaml:"may_name_case_ids"`
	Webhook        Webhook `yaml:"webhook"`
}

// Defaults gives the configuration a file is decoded over.
func Defaults() Config {
	return Config{
		Listen: "127.0.0.1:8080",
		Limits: Limits{
			Posts: Rate{50, 100}, Reads: Rate{200, 400}, CustomerPosts: Rate{10, 50}, CustomerReads: Rate{50, 200},
			TenantPosts: Rate{200, 400}, TenantReads: Rate{800, 1600}, CasesInFlight: 5000, InFlight: 1024, Streams: 4096, RedisTimeout: 100 * time.Millisecond,
		},
	}
}

// Validate checks the gateway's own part as a whole.
func (c Config) Validate() error {
	var problems []error
	if c.Listen == "" {
		problems = append(problems, errors.New("listen: missing"))
	}
	problems = append(problems, c.TLS.Validate())
	if c.Redis.Addr == "" {
		problems = append(problems, errors.New("redis.addr: missing"))
	}
	for _, r := range []struct {
		name string
		rate Rate
	}{
		{"posts", c.Limits.Posts},
		{"reads", c.Limits.Reads},
		{"customer_posts", c.Limits.CustomerPosts},
		{"customer_reads", c.Limits.CustomerReads},
		{"tenant_posts", c.Limits.TenantPosts},
		{"tenant_reads", c.Limits.TenantReads},
	} {
		if r.rate.PerSecond < 1 || r.rate.Burst < 1 {
			problems = append(problems, fmt.Errorf("limits.%s: want per_second and burst of at least 1", r.name))
		}
	}
	if c.Limits.InFlight < 1 || c.Limits.Streams < 1 || c.Limits.CasesInFlight < 1 {
		problems = append(problems, errors.New("limits: want in_flight, streams and cases_in_flight of at least 1"))
	}
	if c.Limits.RedisTimeout < time.Millisecond || c.Limits.RedisTimeout > 10*time.Second {
		problems = append(problems, errors.New("limits.redis_timeout: want 1ms to 10s"))
	}
	if len(c.Channels) == 0 {
		problems = append(problems, errors.New("channels: none"))
	}
	_, err := c.keys()
	return errors.Join(append(problems, err, c.webhooks(), c.Provider.validate())...)
}

// keys checks the channels and gives those with a key by key.
func (c Config) keys() (*edge.Tokens[*Channel], error) {
	var keys edge.Tokens[*Channel]
	var problems []error
	for i := range c.Channels {
		ch := &c.Channels[i]
		err := outside(ch.Name)
		switch {
		case err != nil:
			err = fmt.Errorf("name: %w", err)
		case (ch.KeySHA256 != "") == (ch.OIDC != nil):
			err = errors.New("want either key_sha256 or oidc")
		case ch.OIDC != nil:
			err = c.checkLogin(i)
		default:
			if err = ch.checkKey(); err != nil {
				break
			}
			if err = keys.Add(ch.KeySHA256, ch); err != nil {
				err = fmt.Errorf("key_sha256: %w", err)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("channels[%d]: %w", i, err))
		}
	}
	return &keys, errors.Join(problems...)
}

func (ch *Channel) checkKey() error {
	if err := subject.CheckTenant("tenant", ch.Tenant); err != nil {
		return err
	}
	switch {
	case (ch.Customer != "") == ch.MayNameCustomer:
		return errors.New("want either customer or may_name_customer")
	case ch.Customer != "":
		if err := outside(ch.Customer); err != nil {
			return fmt.Errorf("customer: %w", err)
		}
	}
	return nil
}

// outside checks the name of a customer or a channel: an identifier, and not
// the desk's own, whose cases are for people only (TENANT-1).
func outside(name string) error {
	if name == ident.Desk {
		return fmt.Errorf("%q is the desk's own", name)
	}
	return ident.Token(name)
}

// checkLogin also looks for an earlier channel that takes the same tokens: they
// would belong to both.
func (c Config) checkLogin(i int) error {
	ch := &c.Channels[i]
	if ch.Tenant != "" {
		if err := subject.CheckTenant("tenant", ch.Tenant); err != nil {
			return err
		}
	}
	if err := ch.OIDC.check(ch); err != nil {
		return err
	}
	for k := range c.Channels[:i] {
		if o := c.Channels[k].OIDC; o != nil && o.overlap(ch.OIDC) {
			return fmt.Errorf("oidc: channels[%d] takes tokens of the same issuer for the same audience", k)
		}
	}
	return nil
}
