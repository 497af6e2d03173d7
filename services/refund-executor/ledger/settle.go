package ledger

import (
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Settling is a person's answer to what became of the refunds of an action that
// are in doubt. That it is that person's word was checked before.
type Settling struct {
	Positions []Position
	Answers   []*amendsv1.Settlement
	// By is who said it.
	By   string
	Look Look
	// At dates the outcomes.
	At time.Time
}

// WriteSettlement gives the entry in which every refund in doubt is settled as
// the person said, in one step, or nil when none is in doubt. The word alone
// does not count: a refund that is named must be listed on the order, on that
// payment with that amount, and be no other intent's; one that is said not to
// exist must be absent by our reference from a listing made when no call could
// be under way. What cannot be so is undecidable, and nothing is written.
func WriteSettlement(e *amendsv1.EffectEntry, s Settling) (*amendsv1.EffectEntry, error) {
	for _, a := range s.Answers {
		if !slices.ContainsFunc(s.Positions, func(p Position) bool { return p.Refund.GetIdempotencyKey() == a.GetIdempotencyKey() }) {
			return nil, Undecidable(ReasonSettleOtherKey, "key %s is not of this action", a.GetIdempotencyKey())
		}
	}
	next := e
	for _, p := range s.Positions {
		if p.Standing != Doubtful {
			continue
		}
		i := slices.IndexFunc(s.Answers, func(a *amendsv1.Settlement) bool { return a.GetIdempotencyKey() == p.Refund.GetIdempotencyKey() })
		if i < 0 {
			return nil, Undecidable(ReasonSettleIncomplete, "nothing is said of key %s", p.Refund.GetIdempotencyKey())
		}
		a, err := s.answer(next, p.Intent, s.Answers[i].GetRefundId())
		if err != nil {
			return nil, err
		}
		n, err := WriteOutcome(next, p.Intent.GetIdempotencyKey(), p.Intent.GetCalls(), a, s.At)
		if err != nil {
			return nil, err
		}
		if n != nil {
			next = n
		}
	}
	return oneRevision(e, next), nil
}

// oneRevision makes several changes of an entry one; nil when there is none.
func oneRevision(before, after *amendsv1.EffectEntry) *amendsv1.EffectEntry {
	if after == before {
		return nil
	}
	after.Revision = before.GetRevision() + 1
	return after
}

func (s Settling) answer(e *amendsv1.EffectEntry, in *amendsv1.EffectIntent, refundID string) (Answer, error) {
	v := s.Look.View
	if v.Order == nil || v.Tenant != e.GetTenant() || v.Order.GetOrderId() != e.GetOrderId() {
		return Answer{}, Undecidable(ReasonOrderUnknown, "the provider has no such order")
	}
	ours, err := v.referring(in)
	if err != nil {
		return Answer{}, err
	}
	if refundID == "" {
		switch {
		case ours != nil:
			return Answer{}, Undecidable(ReasonSettleExists, "refund %s carries key %s", ours.GetRefundId(), in.GetIdempotencyKey())
		case !s.Look.late(in):
			return Answer{}, Undecidable(ReasonAbsenceOpen, "a call of key %s may be under way", in.GetIdempotencyKey())
		}
		return Answer{Class: amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, Reason: ReasonSettledAbsent, Proven: true, By: s.By}, nil
	}
	i := slices.IndexFunc(v.Refunds, func(r *amendsv1.Refund) bool { return r.GetRefundId() == refundID })
	if i < 0 {
		return Answer{}, Undecidable(ReasonSettleUnknown, "refund %s is not on the order", refundID)
	}
	switch r := v.Refunds[i]; {
	case ours != nil && ours != r:
		return Answer{}, Undecidable(ReasonSettleExists, "refund %s carries key %s", ours.GetRefundId(), in.GetIdempotencyKey())
	case r.GetPaymentId() != in.GetPaymentId() || !money.Equal(r.GetAmount(), in.GetAmount()):
		return Answer{}, Undecidable(ReasonSettleDiffers, "refund %s is not what key %s was begun for", refundID, in.GetIdempotencyKey())
	case ours == nil && owned(e, r):
		return Answer{}, Undecidable(ReasonSettleTaken, "refund %s is another intent's", refundID)
	default:
		return Answer{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundID: refundID, Status: r.GetStatus(), By: s.By}, nil
	}
}
