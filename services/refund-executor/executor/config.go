package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// maxCallWindow is the longest time between an intent and the start of its call.
const maxCallWindow = ledger.MaxCallWindow

const (
	maxApprovalLife = 24 * time.Hour
	// signedAhead is how far an approver's clock may be ahead of the executor's.
	signedAhead = 5 * time.Minute
)

// Config is the executor's configuration.
type Config struct {
	boot.Common `yaml:",inline"`
	Payments    Payments `yaml:"payments"`
	// ApproverRegistry is the file that says who may approve what.
	ApproverRegistry string `yaml:"approver_registry"`
	// Limits are per currency. A currency without an entry always needs
	// a person's approval.
	Limits []Limits `yaml:"limits"`
	// CallWindow is how long after its intent a call may still start; at most 30s.
	CallWindow time.Duration `yaml:"call_window"`
	// ApprovalLife is how old a signature may be when an intent is written: an
	// action that was made to expire late does not keep it. Not below the
	// orchestrator's approval_expiry.
	ApprovalLife time.Duration `yaml:"approval_life"`
	// Workers handle tasks in parallel.
	Workers int `yaml:"workers"`
	// Reconcile says how the provider is compared with the ledger.
	Reconcile reconcile.Config `yaml:"reconcile"`
}

// Payments says where the provider is.
type Payments struct {
	URL string `yaml:"url"`
	// KeyFile holds the refund-write API key.
	KeyFile string `yaml:"key_file"`
	// Timeout bounds one call.
	Timeout time.Duration `yaml:"timeout"`
	// KeyWindow is how long the provider remembers an idempotency key; 0 says
	// that it keeps none, and a call whose outcome is unknown is never repeated.
	KeyWindow time.Duration `yaml:"key_window"`
}

// Limits are the executor's own limits in one currency, in minor units.
type Limits struct {
	Currency string `yaml:"currency"`
	// ApprovalThreshold and SecondThreshold are inclusive: from them on one
	// and two approvers are needed, for the refunds of an order in 30 days.
	ApprovalThreshold int64 `yaml:"approval_threshold"`
	SecondThreshold   int64 `yaml:"second_threshold"`
	// Caps on what nobody approved, inclusive. The first two default to just
	// below the threshold.
	CapRefund     int64 `yaml:"cap_refund"`
	CapOrder      int64 `yaml:"cap_order"`
	CapTenantHour int64 `yaml:"cap_tenant_hour"`
	CapTenantDay  int64 `yaml:"cap_tenant_day"`
}

// Defaults gives the configuration a file is decoded over.
func Defaults() Config {
	return Config{
		Payments: Payments{Timeout: 5 * time.Second, KeyWindow: 24 * time.Hour},
		Limits: []Limits{{
			Currency: "INR", ApprovalThreshold: 1_000_00, SecondThreshold: 50_000_00,
			CapTenantHour: 50_000_00, CapTenantDay: 200_000_00,
		}},
		CallWindow: maxCallWindow, ApprovalLife: time.Hour,
		Workers:   64,
		Reconcile: reconcile.Defaults(),
	}
}

// Validate checks the executor's own part as a whole.
func (c Config) Validate() error {
	var problems []error
	if c.Payments.URL == "" {
		problems = append(problems, errors.New("payments.url: missing"))
	}
	if c.Payments.KeyFile == "" {
		problems = append(problems, errors.New("payments.key_file: missing"))
	}
	if c.ApproverRegistry == "" {
		problems = append(problems, errors.New("approver_registry: missing"))
	}
	if c.CallWindow <= 0 || c.CallWindow > maxCallWindow {
		problems = append(problems, fmt.Errorf("call_window: want more than 0s and at most %s", maxCallWindow))
	}
	if c.ApprovalLife < time.Second || c.ApprovalLife > maxApprovalLife {
		problems = append(problems, fmt.Errorf("approval_life: want 1s to %s", maxApprovalLife))
	}
	if c.Payments.Timeout <= 0 || c.Payments.Timeout > maxCallWindow {
		problems = append(problems, fmt.Errorf("payments.timeout: want more than 0s and at most %s", maxCallWindow))
	}
	if c.Payments.KeyWindow < 0 {
		problems = append(problems, errors.New("payments.key_window: negative"))
	}
	if c.Workers < 1 || c.Workers > 1024 {
		problems = append(problems, errors.New("workers: want 1 to 1024"))
	}
	problems = append(problems, c.Reconcile.Validate())
	seen := map[string]bool{}
	for i, l := range c.Limits {
		if err := l.check(); err != nil {
			problems = append(problems, fmt.Errorf("limits[%d]: %w", i, err))
		}
		if seen[l.Currency] {
			problems = append(problems, fmt.Errorf("limits[%d]: currency %s is listed twice", i, l.Currency))
		}
		seen[l.Currency] = true
	}
	return errors.Join(problems...)
}

func (l Limits) check() error {
	switch {
	case money.Valid(money.New(0, l.Currency)) != nil:
		return fmt.Errorf("currency %q is not an ISO 4217 code", l.Currency)
	case l.ApprovalThreshold < 1 || l.SecondThreshold < l.ApprovalThreshold:
		return errors.New("want 1 ≤ approval_threshold ≤ second_threshold")
	case l.CapRefund < 0 || l.CapOrder < 0 || l.CapTenantHour < 0 || l.CapTenantDay < 0:
		return errors.New("a cap is negative")
	case l.CapTenantHour == 0 || l.CapTenantDay == 0:
		return errors.New("cap_tenant_hour or cap_tenant_day is missing")
	}
	return nil
}

func (c Config) policy() ledger.Policy {
	p := make(ledger.Policy, 0, len(c.Limits))
	for _, l := range c.Limits {
		p = append(p, ledger.Limits{
			Currency: l.Currency, Approval: l.ApprovalThreshold, Second: l.SecondThreshold,
			PerRefund: orBelow(l.CapRefund, l.ApprovalThreshold), PerOrder: orBelow(l.CapOrder, l.ApprovalThreshold),
			TenantHour: l.CapTenantHour, TenantDay: l.CapTenantDay,
		})
	}
	return p
}

func orBelow(limit, threshold int64) int64 {
	if limit == 0 {
		return threshold - 1
	}
	return limit
}
