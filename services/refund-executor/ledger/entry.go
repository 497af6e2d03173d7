package ledger

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Bounds of one order's entry.
const (
	MaxIntents    = 256
	MaxTombstones = 256
	MaxPayments   = 64
	// MaxBytes bounds the encoded entry.
	MaxBytes = 256 << 10
	// MaxCalls bounds how often one intent's call is begun.
	MaxCalls = 100
)

func sameParameters(in *amendsv1.EffectIntent, a *amendsv1.ActionRecord, r *amendsv1.ActionRefund) bool {
	return in.GetCaseId() == a.GetCaseId() && in.GetPaymentId() == r.GetPaymentId() && money.Equal(in.GetAmount(), r.GetAmount())
}

func standing(in *amendsv1.EffectIntent) Standing {
	switch in.GetOutcome().GetClass() {
	case amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, amendsv1.EffectClass_EFFECT_CLASS_REFUSED:
		return Settled
	case amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT:
		return Idle
	default:
		return Doubtful
	}
}

// live reports whether an intent may have moved money.
func live(in *amendsv1.EffectIntent) bool {
	switch standing(in) {
	case Idle:
		return false
	case Settled:
		o := in.GetOutcome()
		return o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED && !dead(o.GetProviderStatus())
	default:
		return true
	}
}

// dead reports whether a refund with this status moved no money.
func dead(s amendsv1.RefundStatus) bool {
	return s == amendsv1.RefundStatus_REFUND_STATUS_FAILED || s == amendsv1.RefundStatus_REFUND_STATUS_CANCELED
}

func find(e *amendsv1.EffectEntry, key string) *amendsv1.EffectIntent {
	for _, in := range e.GetIntents() {
		if in.GetIdempotencyKey() == key {
			return in
		}
	}
	return nil
}

func tombstone(e *amendsv1.EffectEntry, key string) *amendsv1.Tombstone {
	for _, t := range e.GetTombstones() {
		if t.GetIdempotencyKey() == key {
			return t
		}
	}
	return nil
}

// reopen gives the entry to change: a copy with the next revision, or the first
// entry of an order.
func reopen(e *amendsv1.EffectEntry, tenant, orderID string) *amendsv1.EffectEntry {
	if e == nil {
		return &amendsv1.EffectEntry{Tenant: tenant, OrderId: orderID, Revision: 1}
	}
	n := proto.CloneOf(e)
	n.Revision++
	return n
}

// seal recomputes the sums of a changed entry and checks its bounds.
func seal(n *amendsv1.EffectEntry) error {
	if err := Sum(n); err != nil {
		return err
	}
	if len(n.GetIntents()) > MaxIntents || len(n.GetTombstones()) > MaxTombstones || len(n.GetSums()) > MaxPayments || len(n.GetSightings()) > MaxSightings || proto.Size(n) > MaxBytes {
		return Refuse(ReasonLedgerFull, "entry of order %s holds %d intents, %d tombstones, %d bytes", n.GetOrderId(), len(n.GetIntents()), len(n.GetTombstones()), proto.Size(n))
	}
	return nil
}

// Sum sets the entry's sums from its intents: per payment and for the order,
// those that may have moved money.
func Sum(e *amendsv1.EffectEntry) error {
	per := map[string]*amendsv1.Money{}
	e.Sums, e.OrderSum = nil, nil
	for _, in := range e.GetIntents() {
		if !live(in) {
			continue
		}
		payment, err := plus(per[in.GetPaymentId()], in.GetAmount())
		if err != nil {
			return Refuse(ReasonContradictory, "sum of payment %s: %w", in.GetPaymentId(), err)
		}
		order, err := plus(e.GetOrderSum(), in.GetAmount())
		if err != nil {
			return Refuse(ReasonContradictory, "sum of order %s: %w", e.GetOrderId(), err)
		}
		per[in.GetPaymentId()], e.OrderSum = payment, order
	}
	for _, id := range slices.Sorted(maps.Keys(per)) {
		e.Sums = append(e.Sums, &amendsv1.PaymentSum{PaymentId: id, Refunded: per[id]})
	}
	return nil
}

func plus(sum, m *amendsv1.Money) (*amendsv1.Money, error) {
	if sum == nil {
		return money.New(m.GetMinor(), m.GetCurrency()), nil
	}
	return money.Add(sum, m)
}

// Worst gives the class that answers for several.
func Worst(a, b amendsv1.EffectClass) amendsv1.EffectClass {
	if slices.Index(badness, a) < slices.Index(badness, b) {
		return b
	}
	return a
}

// badness orders the classes of one action's refunds. What is in doubt comes
// before what is refused: a refusal ends the case, a doubt may not.
var badness = []amendsv1.EffectClass{
	amendsv1.EffectClass_EFFECT_CLASS_UNSPECIFIED,
	amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED,
	amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN,
	amendsv1.EffectClass_EFFECT_CLASS_REFUSED,
	amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT,
	amendsv1.EffectClass_EFFECT_CLASS_HELD,
	amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN,
	amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE,
	amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP,
}
