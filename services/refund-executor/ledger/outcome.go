package ledger

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Answer is what one call to the provider came to, or a look-up, or a person's
// signed word.
type Answer struct {
	Class    amendsv1.EffectClass
	RefundID string
	Status   amendsv1.RefundStatus
	Reason   string
	// Proven says of NO_EFFECT that it holds for every call begun so far, not
	// only for one.
	Proven bool
	// By is the person whose word it is.
	By string
}

// outcome gives the record of an answer. An acknowledgement without a refund
// id is none (TRUTH-2), and a refund that failed at once is a refusal.
func (a Answer) outcome(at time.Time) *amendsv1.EffectOutcome {
	o := &amendsv1.EffectOutcome{Class: a.Class, RefundId: a.RefundID, ProviderStatus: a.Status, Reason: a.Reason, At: timestamppb.New(at), SettledBy: a.By}
	switch {
	case a.Class == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED && a.RefundID == "":
		o.Class, o.Reason = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, ReasonNoRefundID
	case a.Class == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED && dead(a.Status):
		o.Class, o.Reason = amendsv1.EffectClass_EFFECT_CLASS_REFUSED, ReasonProviderFailed
	}
	return o
}

// WriteOutcome gives the entry in which a call's answer is recorded for its
// key, or nil when the entry already says as much. call is the number the call
// was begun as. An acknowledgement is the truth about the key whoever brings
// it. That nothing was done counts only from the one call that can be open, or
// when it is proven of all; otherwise the key stays in doubt.
func WriteOutcome(e *amendsv1.EffectEntry, key string, call uint32, a Answer, at time.Time) (*amendsv1.EffectEntry, error) {
	if find(e, key) == nil {
		return nil, fmt.Errorf("key %s: %w", key, ErrNoIntent)
	}
	n := reopen(e, e.GetTenant(), e.GetOrderId())
	in := find(n, key)
	o, had := a.outcome(at), in.GetOutcome()
	if had.GetRefundId() != "" {
		if o.GetRefundId() != "" && o.GetRefundId() != had.GetRefundId() {
			return nil, fmt.Errorf("key %s has refund %s, answered %s: %w", key, had.GetRefundId(), o.GetRefundId(), ErrOtherRefund)
		}
		return nil, nil
	}
	if o.GetRefundId() == "" {
		if st := standing(in); st == Settled || st == Idle {
			return nil, nil
		}
		nothing := o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT || o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_REFUSED
		if sole := call == in.GetCalls() && in.GetCalls() == in.GetVoidCalls()+1; nothing && !sole && !a.Proven {
			o.Class, o.Reason = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, ReasonOtherCallOpen
		}
		if o.GetClass() == had.GetClass() && o.GetReason() == had.GetReason() {
			return nil, nil
		}
	}
	in.Outcome = o
	if o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT {
		in.VoidCalls = in.GetCalls()
	}
	if err := seal(n); err != nil {
		return nil, err
	}
	return n, nil
}

// Result answers a task with what the entry says of the action's refunds.
// Refunds that were never begun are left out unless they are withdrawn; a doubt
// without an outcome reads as unknown. Where a part was made and the rest is
// withdrawn the answer to the whole is a refusal: nothing more will follow, and
// people have to see both.
func Result(sha string, positions []Position) *amendsv1.EffectResult {
	res, made := &amendsv1.EffectResult{ActionSha256: sha}, false
	for _, p := range positions {
		o := proto.CloneOf(p.Intent.GetOutcome())
		switch {
		case p.Standing == Withdrawn:
			o = p.outcome()
		case p.Intent == nil:
			continue
		case o == nil:
			o = &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, Reason: ReasonOpen, At: p.Intent.GetBegunAt()}
		}
		res.Refunds = append(res.Refunds, &amendsv1.RefundResult{
			IdempotencyKey: p.Refund.GetIdempotencyKey(), PaymentId: p.Refund.GetPaymentId(), Amount: p.Refund.GetAmount(), Outcome: o,
		})
		if Worst(res.GetClass(), o.GetClass()) != res.GetClass() {
			res.Class, res.Reason = o.GetClass(), o.GetReason()
		}
		if begun := p.Intent.GetBegunAt(); begun != nil && (res.GetBegunAt() == nil || begun.AsTime().Before(res.GetBegunAt().AsTime())) {
			res.BegunAt = begun
		}
		made = made || o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
	}
	if made && res.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN {
		res.Class, res.Reason = amendsv1.EffectClass_EFFECT_CLASS_REFUSED, ReasonWithdrawnInPart
	}
	return res
}
