package ledger

import (
	"errors"
	"fmt"
	"slices"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Reason codes of a refusal. Those of a signed decision are in package
// approval.
const (
	ReasonKeyReused        = "key_reused_with_other_parameters"
	ReasonApprovalSpent    = "approval_spent"
	ReasonApprovalMissing  = "approval_missing"
	ReasonActionExpired    = "action_expired"
	ReasonCancelled        = "cancelled"
	ReasonReservedOrder    = "reserved_order"
	ReasonOrderMismatch    = "order_mismatch"
	ReasonOrderUnknown     = "order_unknown"
	ReasonContradictory    = "order_contradictory"
	ReasonCurrency         = "currency_mismatch"
	ReasonPaymentUnknown   = "payment_unknown"
	ReasonNotSettled       = "not_settled"
	ReasonDisputed         = "disputed"
	ReasonExceedsCaptured  = "exceeds_captured"
	ReasonNotOverpaid      = "order_not_overpaid"
	ReasonUnrecordedRefund = "refund_without_intent"
	ReasonCapRefund        = "cap_exceeded_refund"
	ReasonCapOrder         = "cap_exceeded_order"
	ReasonCapHour          = "cap_exceeded_hour"
	ReasonCapDay           = "cap_exceeded_day"
	ReasonCapFull          = "cap_window_full"
	ReasonLedgerFull       = "ledger_full"
	ReasonCallsSpent       = "calls_spent"
)

// Reason codes of an outcome.
const (
	// ReasonOpen: an intent stands and no outcome is recorded.
	ReasonOpen = "outcome_open"
	// ReasonNoRefundID: the provider acknowledged without naming a refund.
	ReasonNoRefundID = "acknowledged_without_refund_id"
	// ReasonProviderFailed: the provider made a refund object that has failed.
	ReasonProviderFailed = "refund_failed_at_provider"
	// ReasonOtherCallOpen: this call did nothing, another may still arrive.
	ReasonOtherCallOpen = "other_call_open"
)

// Refusal says why something may not be done, and how the task is answered.
type Refusal struct {
	Class  amendsv1.EffectClass
	Reason string
	Err    error
	// CancelRevision is that of the tombstone, when the action is withdrawn.
	CancelRevision uint64
}

func (r *Refusal) Error() string { return r.Reason + ": " + r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// Refuse gives the refusal that an own check gives before anything has begun.
func Refuse(reason, format string, args ...any) error {
	return &Refusal{Class: amendsv1.EffectClass_EFFECT_CLASS_REFUSED, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Undecidable gives the refusal of what neither a call nor this check settles.
func Undecidable(reason, format string, args ...any) error {
	return &Refusal{Class: amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// InDoubt gives the refusal of an action of which a refund is in doubt: the
// money may have moved, so no check can say no.
func InDoubt(err error, positions []Position) error {
	r, ok := errors.AsType[*Refusal](err)
	if !ok || !slices.ContainsFunc(positions, func(p Position) bool { return p.Standing == Doubtful }) {
		return err
	}
	return &Refusal{Class: amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE, Reason: r.Reason, Err: r.Err}
}

var (
	// ErrNoIntent: an outcome for a key that was never begun.
	ErrNoIntent = errors.New("no intent for this key")
	// ErrOtherRefund: a second refund id for a key that has one.
	ErrOtherRefund = errors.New("key is acknowledged with another refund")
)
