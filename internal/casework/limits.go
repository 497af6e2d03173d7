package casework

import (
	"time"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Limits bound every loop of a case. They belong to the rule set a case is
// pinned to.
type Limits struct {
	// A specialist's answer to one attempt is due after Deadline; Attempts
	// bounds the tries of one task.
	Deadline time.Duration
	Attempts int
	// EffectDeadline is how long an execute attempt may stay unanswered before
	// its outcome is unknown and it is asked again; the wait doubles up to
	// EffectDeadlineMax.
	EffectDeadline    time.Duration
	EffectDeadlineMax time.Duration
	// EffectDispatches bounds how often one action is asked for before people
	// reconcile it.
	EffectDispatches int
	// Confirmations bounds how often one question about refunds that were made
	// is asked before people have the case.
	Confirmations   int
	ApprovalExpiry  time.Duration
	Proposals       int
	RecheckEvery    time.Duration
	Rechecks        int
	Redrafts        int
	Clarifications  int
	ClarifyDeadline time.Duration
	Delegations     int
	// Reserve is kept out of Delegations for the reply that hands a case over.
	Reserve     int
	ModelTokens int
	Messages    int
	// MessageBytes bounds the customer's texts together, so that a commit
	// always fits.
	MessageBytes int
	// Inputs bounds what a record holds; the last InputReserve of them are
	// kept for results, decisions and timers.
	Inputs       int
	InputReserve int
	// CustodyLease is how long a custodian holds a case before somebody else
	// may take it.
	CustodyLease time.Duration
	// SignatureAge is how old a custodian's signature may be.
	SignatureAge time.Duration
	// TaskActions is the tool-call budget of one task.
	TaskActions int
	// TaskTokens is the model-token budget of one task.
	TaskTokens int
}

// DelegationsOf is how often a case may delegate: a custodian's decision always
// has the work it needs.
func (l Limits) DelegationsOf(rec *amendsv1.CaseRecord) int {
	return l.Delegations + l.Reserve*int(rec.GetConsumption().GetGrants())
}

// DefaultLimits are the desk's defaults.
func DefaultLimits() Limits {
	return Limits{
		Deadline: 30 * time.Second, Attempts: 3,
		EffectDeadline: 10 * time.Second, EffectDeadlineMax: 10 * time.Minute, EffectDispatches: 30, Confirmations: 12,
		ApprovalExpiry: 30 * time.Minute, Proposals: 2,
		RecheckEvery: 4 * time.Hour, Rechecks: 6,
		Redrafts: 2, Clarifications: 2, ClarifyDeadline: 72 * time.Hour,
		Delegations: 20, Reserve: 6, ModelTokens: 60000,
		Messages: 60, MessageBytes: 192 << 10, Inputs: 500, InputReserve: 250, CustodyLease: 8 * time.Hour, SignatureAge: 10 * time.Minute,
		TaskActions: 16, TaskTokens: 12000,
	}
}
