package reconcile

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/subject"
)

// Config says what is reconciled and how often.
type Config struct {
	// Tenants are those this service answers for.
	Tenants []string `yaml:"tenants"`
	// Every is how often each is reconciled; 0 only when asked.
	Every time.Duration `yaml:"every"`
	// Window is how far back refunds, ledger entries and cases are looked at.
	Window time.Duration `yaml:"window"`
	// Grace is how long two records of the same may differ because something is
	// under way.
	Grace time.Duration `yaml:"grace"`
	// InDoubt is how long an outcome may stay unknown before it is a finding.
	InDoubt time.Duration `yaml:"in_doubt"`
	// Poll is how often requests are looked for.
	Poll time.Duration `yaml:"poll"`
	// MaxOrders bounds the orders or cases one run compares.
	MaxOrders int `yaml:"max_orders"`
}

// Defaults gives the configuration a file is decoded over.
func Defaults() Config {
	return Config{
		Every: time.Hour, Window: 35 * 24 * time.Hour, Grace: 5 * time.Minute, InDoubt: time.Hour, Poll: time.Second, MaxOrders: 20_000,
	}
}

// Validate names everything that is missing or out of range.
func (c Config) Validate() error {
	var problems []error
	bounds := func(name string, v, least, most time.Duration) {
		if v < least || v > most {
			problems = append(problems, fmt.Errorf("reconcile.%s: %s, want %s to %s", name, v, least, most))
		}
	}
	seen := map[string]bool{}
	for _, t := range c.Tenants {
		if err := subject.CheckTenant("reconcile.tenants", t); err != nil {
			problems = append(problems, err)
		}
		if seen[t] {
			problems = append(problems, fmt.Errorf("reconcile.tenants: %s is listed twice", t))
		}
		seen[t] = true
	}
	switch {
	case c.Every != 0 && c.Every < time.Minute:
		problems = append(problems, errors.New("reconcile.every: want at least 1m, or 0 for only when asked"))
	case c.Every > 7*24*time.Hour:
		problems = append(problems, errors.New("reconcile.every: want at most 168h"))
	}
	bounds("window", c.Window, time.Hour, 400*24*time.Hour)
	bounds("grace", c.Grace, 0, time.Hour)
	bounds("in_doubt", c.InDoubt, c.Grace, 24*time.Hour)
	bounds("poll", c.Poll, 10*time.Millisecond, time.Minute)
	if c.MaxOrders < 1 || c.MaxOrders > 1_000_000 {
		problems = append(problems, fmt.Errorf("reconcile.max_orders: %d, want 1 to 1000000", c.MaxOrders))
	}
	return errors.Join(problems...)
}
