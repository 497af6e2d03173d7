package ledger

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxOver bounds the actions that are remembered as over under a key.
const maxOver = 16

// Settling is a person's answer to what became of the refunds of an action that
// are in doubt. That it is that person's word was checked before.
type Settling struct {
	Action    *amendsv1.ActionRecord
	SHA256    string
	Positions []Position
	Answers   []*amendsv1.Settlement
	// By is who said it.
	By   string
	Look Look
	// At dates the outcomes.
	At time.Time
}

// WriteSettlement gives the entry in which every refund in doubt is settled as
// the person said, in one step, or nil when there is nothing to settle. The word
// alone does not count: a refund that is named must be listed on the order, on
// that payment with that amount, and be no other intent's; one that is said not
// to exist must be absent by our reference, and where it is in doubt from
// a listing made when no call could be under way. What cannot be so is
// undecidable, and nothing is written.
//
// That there is none is final for the action, also of a key that was thought to
// have done nothing; one that was never begun is withdrawn by it.
func WriteSettlement(e *amendsv1.EffectEntry, s Settling) (*amendsv1.EffectEntry, error) {
	for _, a := range s.Answers {
		if !slices.ContainsFunc(s.Positions, func(p Position) bool { return p.Refund.GetIdempotencyKey() == a.GetIdempotencyKey() }) {
			return nil, Undecidable(ReasonSettleOtherKey, "key %s is not of this action", a.GetIdempotencyKey())
		}
	}
	next := e
	for _, p := range s.Positions {
		if !p.Open() {
			continue
		}
		i := slices.IndexFunc(s.Answers, func(a *amendsv1.Settlement) bool { return a.GetIdempotencyKey() == p.Refund.GetIdempotencyKey() })
		switch {
		case i < 0 && p.Standing != Idle:
			return nil, Undecidable(ReasonSettleIncomplete, "nothing is said of key %s", p.Refund.GetIdempotencyKey())
		case i < 0:
			continue
		}
		n, err := s.write(next, p, s.Answers[i].GetRefundId())
		if err != nil {
			return nil, err
		}
		if n != nil {
			next = n
		}
	}
	return oneRevision(e, next), nil
}

// write records the answer to one refund; nil when it says nothing new.
func (s Settling) write(e *amendsv1.EffectEntry, p Position, refundID string) (*amendsv1.EffectEntry, error) {
	switch {
	case p.Intent == nil:
		return s.withdraw(e, p, refundID)
	case refundID != "" && p.Intent.GetActionSha256() != s.SHA256:
		return nil, Undecidable(ReasonNothingBegun, "key %s was not begun for this action", p.Intent.GetIdempotencyKey())
	}
	a, err := s.answer(e, p, refundID)
	if err != nil {
		return nil, err
	}
	n, err := WriteOutcome(e, p.Intent.GetIdempotencyKey(), p.Intent.GetCalls(), a, s.At)
	if err != nil || refundID != "" {
		return n, err
	}
	if n == nil { // it was known to have done nothing
		if slices.Contains(p.Intent.GetOverSha256(), s.SHA256) {
			return nil, nil
		}
		n = reopen(e, e.GetTenant(), e.GetOrderId())
	}
	in := find(n, p.Intent.GetIdempotencyKey())
	in.Outcome = a.outcome(s.At)
	for _, sha := range []string{in.GetActionSha256(), s.SHA256} {
		if !slices.Contains(in.GetOverSha256(), sha) {
			in.OverSha256 = append(in.OverSha256, sha)
		}
	}
	in.OverSha256 = in.OverSha256[max(0, len(in.OverSha256)-maxOver):]
	return n, seal(n)
}

// withdraw records that there is no refund of a key that was never begun.
func (s Settling) withdraw(e *amendsv1.EffectEntry, p Position, refundID string) (*amendsv1.EffectEntry, error) {
	key := p.Refund.GetIdempotencyKey()
	if refundID != "" {
		return nil, Undecidable(ReasonNothingBegun, "key %s was never begun", key)
	}
	if v := s.Look.View; v.Order != nil { // an order that the provider does not have has no refund
		if err := s.checkOrder(); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(v.Refunds, func(r *amendsv1.Refund) bool { return r.GetReference() == key }); i >= 0 {
			return nil, Undecidable(ReasonSettleExists, "refund %s carries key %s", v.Refunds[i].GetRefundId(), key)
		}
	}
	n := reopen(e, s.Action.GetTenant(), s.Action.GetOrderId())
	n.Tombstones = append(n.Tombstones, &amendsv1.Tombstone{
		IdempotencyKey: key, CaseId: s.Action.GetCaseId(), CancelRevision: 1, At: timestamppb.New(s.At), SettledBy: s.By,
	})
	return n, seal(n)
}

// checkOrder refuses a reading of nothing, or of another order.
func (s Settling) checkOrder() error {
	if v := s.Look.View; v.Order == nil || v.Tenant != s.Action.GetTenant() || v.Order.GetOrderId() != s.Action.GetOrderId() {
		return Undecidable(ReasonOrderUnknown, "the provider has no such order")
	}
	return nil
}

// oneRevision makes several changes of an entry one; nil when there is none.
func oneRevision(before, after *amendsv1.EffectEntry) *amendsv1.EffectEntry {
	if after == before {
		return nil
	}
	after.Revision = before.GetRevision() + 1
	return after
}

// answer checks what is said of a refund that was begun.
func (s Settling) answer(e *amendsv1.EffectEntry, p Position, refundID string) (Answer, error) {
	if err := s.checkOrder(); err != nil {
		return Answer{}, err
	}
	v, in := s.Look.View, p.Intent
	ours, err := v.referring(in)
	if err != nil {
		return Answer{}, err
	}
	if refundID == "" {
		switch {
		case ours != nil:
			return Answer{}, Undecidable(ReasonSettleExists, "refund %s carries key %s", ours.GetRefundId(), in.GetIdempotencyKey())
		case p.Standing == Doubtful && !s.Look.late(in):
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
