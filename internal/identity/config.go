package identity

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Config says which tokens are good.
type Config struct {
	// Issuer is the issuer's URL, exactly as its tokens have it: https, or http
	// on this machine.
	Issuer string `yaml:"issuer"`
	// JWKSURL is where the issuer's keys are; default: what its discovery
	// document says.
	JWKSURL string `yaml:"jwks_url,omitempty"`
	// CAFile holds the authorities that the issuer's certificate may come from;
	// default: the system's.
	CAFile string `yaml:"ca_file,omitempty"`
	// Audiences are who a token may be for; one of them is enough.
	Audiences []string `yaml:"audiences"`
	// AuthorizedParties are whom a token may have been issued to (azp). Given,
	// every token must name one of them; else only a token for several
	// audiences, and the audiences are the parties.
	AuthorizedParties []string `yaml:"authorized_parties,omitempty"`
	// Algorithms that may sign; default RS256, PS256, ES256 and EdDSA.
	Algorithms []string `yaml:"algorithms,omitempty"`
	// Leeway is how far the clocks may differ; default 30s, at most 2m.
	Leeway time.Duration `yaml:"leeway,omitempty"`
	Keys   Keys          `yaml:"keys,omitempty"`
}

// Keys say how the issuer's keys are kept.
type Keys struct {
	// Refresh is the least time between two questions to the issuer; default
	// 30s, from 1s to 10m.
	Refresh time.Duration `yaml:"refresh,omitempty"`
	// MaxAge is how old keys may get before the issuer is asked again, and so
	// how long a key it withdrew may go on working; default 10m, at most 24h.
	MaxAge time.Duration `yaml:"max_age,omitempty"`
	// MaxStale is how old keys may get while the issuer does not answer;
	// default 12h, at most 168h.
	MaxStale time.Duration `yaml:"max_stale,omitempty"`
}

// Limits of a configuration.
const (
	maxLeeway   = 2 * time.Minute
	minRefresh  = time.Second
	maxRefresh  = 10 * time.Minute
	maxMaxAge   = 24 * time.Hour
	maxMaxStale = 7 * 24 * time.Hour
)

var (
	defaultAlgorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}
	// asymmetric are all that may be configured: with a shared secret whoever
	// can check a token can make one.
	asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)

func (c Config) withDefaults() Config {
	if len(c.Algorithms) == 0 {
		c.Algorithms = defaultAlgorithms
	}
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&c.Leeway, 30*time.Second)
	set(&c.Keys.Refresh, 30*time.Second)
	set(&c.Keys.MaxAge, max(10*time.Minute, c.Keys.Refresh))
	set(&c.Keys.MaxStale, max(12*time.Hour, c.Keys.MaxAge))
	return c
}

// Validate checks it as a whole.
func (c Config) Validate() error {
	c = c.withDefaults()
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := checkURL(c.Issuer); err != nil {
		wrong("issuer: %w", err)
	}
	if c.JWKSURL != "" {
		if err := checkURL(c.JWKSURL); err != nil {
			wrong("jwks_url: %w", err)
		}
	}
	if len(c.Audiences) == 0 {
		wrong("audiences: none; a token for anybody would be a token for us")
	}
	for _, list := range []struct {
		name   string
		values []string
	}{{"audiences", c.Audiences}, {"authorized_parties", c.AuthorizedParties}} {
		if slices.Contains(list.values, "") {
			wrong("%s: empty", list.name)
		}
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(asymmetric, a) {
			wrong("algorithms: %q; want of %s", a, strings.Join(asymmetric, ", "))
		}
	}
	within := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			wrong("%s: want %s to %s", name, least, most)
		}
	}
	within("leeway", c.Leeway, 0, maxLeeway)
	within("keys.refresh", c.Keys.Refresh, minRefresh, maxRefresh)
	within("keys.max_age", c.Keys.MaxAge, c.Keys.Refresh, maxMaxAge)
	within("keys.max_stale", c.Keys.MaxStale, c.Keys.MaxAge, maxMaxStale)
	return errors.Join(problems...)
}

// checkURL lets https pass, and http to this machine.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("want a URL of scheme, host and path")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return errors.New("want https; http only to this machine")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// pool reads the authorities of the issuer's certificate; nil is the system's.
func (c Config) pool() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil //nolint:nilnil // nil is what crypto/tls takes for the system's
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca_file: %s holds no certificate", c.CAFile)
	}
	return p, nil
}
