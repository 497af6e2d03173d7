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
	ReasonApprovalStale    = "approval_stale"
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
	// ReasonEqualRefund: a refund of as much on the same payment is nobody's;
	// a person has to say whether it is the one in doubt.
	ReasonEqualRefund = "equal_refund_elsewhere"
	// ReasonWithdrawnInPart: a part of the action was done, or may have been,
	// and the rest is withdrawn.
	ReasonWithdrawnInPart = "withdrawn_in_part"
	// ReasonNothingBegun: no intent was ever written for the action.
	ReasonNothingBegun = "nothing_begun"
)

// Reason codes of an outcome.
const (
	// ReasonOpen: an intent stands and no outcome is recorded.
	ReasonOpen = "outcome_open"
	// ReasonNoRefundID: the provider acknowledged without naming a refund.
	ReasonNoRefundID = "acknowledged_without_refund_id"
	// ReasonProviderFailed: the provider made a refund object that has failed.
	ReasonProviderFailed = "refund_failed_at_provider"
	// ReasonProvenAbsent: a complete listing, made when no call could be under
	// way any more, shows no such refund.
	ReasonProvenAbsent = "proven_absent"
	// ReasonAbsenceOpen: no such refund is listed, but a call may still be
	// under way.
	ReasonAbsenceOpen = "absence_not_provable_yet"
	// ReasonSettledAbsent: a person settled that there is no refund.
	ReasonSettledAbsent = "settled_absent"
	// ReasonRevived: a refund that had failed counts again at the provider.
	ReasonRevived = "refund_revived_at_provider"
	// ReasonOtherCallOpen: this call did nothing, another may still arrive.
	ReasonOtherCallOpen = "other_call_open"
)

// Reason codes of a person's answer that cannot be so.
const (
	ReasonSettleIncomplete = "settle_incomplete"
	ReasonSettleOtherKey   = "settle_other_key"
	ReasonSettleUnknown    = "settle_refund_unknown"
	ReasonSettleDiffers    = "settle_refund_differs"
	ReasonSettleTaken      = "settle_refund_taken"
	ReasonSettleExists     = "settle_refund_exists"
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
	if !ok || !Doubt(positions) {
		return err
	}
	return &Refusal{Class: amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE, Reason: r.Reason, Err: r.Err}
}

// Doubt reports whether any refund of an action is in doubt.
func Doubt(positions []Position) bool {
	return slices.ContainsFunc(positions, func(p Position) bool { return p.Standing == Doubtful })
}

// Approved reports whether people approved every refund of an action that is in
// doubt, when it was begun.
func Approved(positions []Position) bool {
	return Doubt(positions) && !slices.ContainsFunc(positions, func(p Position) bool {
		return p.Standing == Doubtful && len(p.Intent.GetApprovalIds()) == 0
	})
}

var (
	// ErrNoIntent: an outcome for a key that was never begun.
	ErrNoIntent = errors.New("no intent for this key")
	// ErrOtherRefund: a second refund id for a key that has one.
	ErrOtherRefund = errors.New("key is acknowledged with another refund")
)
