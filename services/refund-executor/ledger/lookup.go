package ledger

import (
	"time"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// ClockMargin is how far the clock of an executor may be behind the
	// broker's: absence is proven only so much after the last call must have
	// ended.
	ClockMargin = 10 * time.Second
	// MaxCallWindow is the longest time from an intent to the start of its call,
	// whatever an executor is configured to.
	MaxCallWindow = 30 * time.Second
)

// Look is one complete reading of an order.
type Look struct {
	View View
	// At is a moment, by the broker's clock, not after the reading began.
	At time.Time
	// StoredAt is when the entry was stored, by the same clock. No intent in it
	// is younger. Zero is not known, and then nothing is proven absent.
	StoredAt time.Time
	// CallTimeout is the longest a call stays under way.
	CallTimeout time.Duration
}

// late reports whether no call of an intent can be under way any more. That the
// intent says until when a call may start is the word of a process whose clock
// may have been wrong; when it was stored is not.
func (l Look) late(in *amendsv1.EffectIntent) bool {
	ends := l.StoredAt.Add(MaxCallWindow)
	if said := in.GetCallBefore().AsTime(); said.After(ends) {
		ends = said
	}
	return !l.StoredAt.IsZero() && !l.At.Before(ends.Add(l.CallTimeout+ClockMargin))
}

// LookUp says what a reading proves of a begun refund: that it exists, by our
// reference on the same payment with the same amount, or that it does not, when
// it is not listed and no call can be under way. What proves neither is UNKNOWN,
// and what only a person can tell is a refusal. A refund that is listed as ours
// is the answer also where the rest of the order contradicts itself.
func LookUp(e *amendsv1.EffectEntry, key string, l Look) (Answer, error) {
	in := find(e, key)
	if in == nil {
		return Answer{}, Undecidable(ReasonNothingBegun, "key %s was never begun", key)
	}
	if l.View.Order == nil {
		return Answer{}, Undecidable(ReasonOrderUnknown, "the provider has no such order")
	}
	if l.View.Tenant != e.GetTenant() || l.View.Order.GetOrderId() != e.GetOrderId() {
		return Answer{}, Undecidable(ReasonOrderMismatch, "the provider answered for another order")
	}
	r, err := l.View.referring(in)
	if err != nil {
		return Answer{}, err
	}
	if r != nil {
		return Answer{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundID: r.GetRefundId(), Status: r.GetStatus()}, nil
	}
	if f := fault(l.View, len(e.GetIntents())); f != nil {
		return Answer{}, Undecidable(ReasonContradictory, "%s", f)
	}
	if !l.late(in) {
		return Answer{Class: amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, Reason: ReasonAbsenceOpen}, nil
	}
	for _, r := range l.View.Refunds {
		if r.GetPaymentId() == in.GetPaymentId() && money.Equal(r.GetAmount(), in.GetAmount()) && !dead(r.GetStatus()) && !owned(e, r) {
			return Answer{}, Undecidable(ReasonEqualRefund, "refund %s is as much on the same payment", r.GetRefundId())
		}
	}
	return Answer{Class: amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, Reason: ReasonProvenAbsent, Proven: true}, nil
}

// WriteLookUp gives the entry in which everything a reading proves of the
// action's begun refunds is recorded, or nil when it proves nothing new. The
// error is the refusal of the first refund that only a person can tell of; what
// was proven of the others is in the entry all the same. Only what is in doubt
// can be proven absent, but a refund that exists is the answer also to a key
// that was thought to have done nothing.
func WriteLookUp(e *amendsv1.EffectEntry, positions []Position, l Look, at time.Time) (*amendsv1.EffectEntry, error) {
	next := e
	var refused error
	for _, p := range positions {
		if p.Standing != Doubtful && p.Standing != Idle {
			continue
		}
		a, err := LookUp(next, p.Refund.GetIdempotencyKey(), l)
		switch {
		case err != nil && p.Standing == Doubtful && refused == nil:
			refused = err
			continue
		case err != nil, a.Class == amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, p.Standing == Idle && a.RefundID == "":
			continue
		}
		n, err := WriteOutcome(next, p.Refund.GetIdempotencyKey(), p.Intent.GetCalls(), a, at)
		if err != nil {
			return nil, err
		}
		if n != nil {
			next = n
		}
	}
	return oneRevision(e, next), refused
}

// referring gives the one refund that carries an intent's reference, or nil. It
// refuses two of them, and one of something else.
func (v View) referring(in *amendsv1.EffectIntent) (*amendsv1.Refund, error) {
	var found *amendsv1.Refund
	for _, r := range v.Refunds {
		switch {
		case r.GetReference() != in.GetIdempotencyKey():
			continue
		case found != nil:
			return nil, Undecidable(ReasonContradictory, "refunds %s and %s carry key %s", found.GetRefundId(), r.GetRefundId(), in.GetIdempotencyKey())
		case r.GetRefundId() == "" || r.GetPaymentId() != in.GetPaymentId() || !money.Equal(r.GetAmount(), in.GetAmount()):
			return nil, Undecidable(ReasonContradictory, "refund %s is not what key %s was begun for", r.GetRefundId(), in.GetIdempotencyKey())
		}
		found = r
	}
	return found, nil
}

// owned reports whether a refund is the outcome of an intent: by its reference,
// or because somebody said so.
func owned(e *amendsv1.EffectEntry, r *amendsv1.Refund) bool {
	return find(e, r.GetReference()) != nil || holder(e, r.GetRefundId()) != nil
}
