package orchestrator

import (
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/reconcile"
)

// Config is the orchestrator's configuration file.
type Config struct {
	boot.Common `yaml:",inline"`
	// Payments is where ownership is asked, with a key that can only do that.
	Payments payments.Access `yaml:"payments"`
	// ApproverRegistry is the file that lists approvers and their keys.
	ApproverRegistry string `yaml:"approver_registry"`
	// PolicyCorpus is the corpus version new cases are pinned to.
	PolicyCorpus string `yaml:"policy_corpus"`
	Workers      int    `yaml:"workers"`
	// SweepEvery is how often cases are looked for whose deadline has passed
	// without a timer.
	SweepEvery time.Duration `yaml:"sweep_every"`
	// ApprovalExpiry bounds how long a proposed action may be approved.
	ApprovalExpiry time.Duration `yaml:"approval_expiry"`
	// Reconcile says how the effect ledger is compared with the cases.
	Reconcile reconcile.Config `yaml:"reconcile"`
}

// Defaults gives the configuration a file is decoded over.
func Defaults() Config {
	return Config{
		Payments: payments.DefaultAccess(), Workers: 64, SweepEvery: time.Minute, ApprovalExpiry: casework.DefaultLimits().ApprovalExpiry,
		Reconcile: reconcile.Defaults(),
	}
}

// Validate names everything that is missing or out of range.
func (c Config) Validate() error {
	problems := []error{c.Payments.Validate(), c.Reconcile.Validate()}
	if c.ApproverRegistry == "" {
		problems = append(problems, errors.New("approver_registry: missing"))
	}
	if c.PolicyCorpus == "" {
		problems = append(problems, errors.New("policy_corpus: missing"))
	}
	if c.Workers < 1 || c.Workers > 1024 {
		problems = append(problems, fmt.Errorf("workers: %d, want 1 to 1024", c.Workers))
	}
	if c.SweepEvery < time.Second {
		problems = append(problems, fmt.Errorf("sweep_every: %s, want at least 1s", c.SweepEvery))
	}
	if c.ApprovalExpiry < time.Second || c.ApprovalExpiry > 24*time.Hour {
		problems = append(problems, fmt.Errorf("approval_expiry: %s, want 1s to 24h", c.ApprovalExpiry))
	}
	return errors.Join(problems...)
}
