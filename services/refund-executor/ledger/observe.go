package ledger

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// MaxSightings bounds what an entry keeps of what the provider said later.
const MaxSightings = 64

// sightRead is the kind of a sighting that is a reading of our own.
const sightRead = "read"

// Observe gives the entry in which what a reading shows of its refunds is
// recorded, or nil when it says as much already. Events are what made somebody
// look: hints, kept and never believed. A status moves on; a word we do not
// know moves nothing, and a success is not taken back by a pending: both are
// kept as sightings. A refund that failed gives its room back, and takes it
// again if it comes back to life.
func Observe(e *amendsv1.EffectEntry, v View, events []*amendsv1.ProviderEvent, at time.Time) (*amendsv1.EffectEntry, error) {
	if e == nil {
		return nil, nil
	}
	shown := map[string]*amendsv1.Refund{}
	for _, r := range v.Refunds {
		shown[r.GetRefundId()] = r
	}
	n, changed := reopen(e, e.GetTenant(), e.GetOrderId()), false
	for _, ev := range events {
		if id := ev.GetObjectId(); strings.HasPrefix(ev.GetKind(), "refund.") && (shown[id] != nil || holder(n, id) != nil) && newest(n, ev.GetKind(), id) == nil {
			n.Sightings = append(n.Sightings, &amendsv1.Sighting{Kind: ev.GetKind(), RefundId: id, At: timestamppb.New(at)})
			changed = true
		}
	}
	for _, in := range n.GetIntents() {
		r := shown[in.GetOutcome().GetRefundId()]
		if r == nil || r.GetPaymentId() != in.GetPaymentId() || !money.Equal(r.GetAmount(), in.GetAmount()) {
			continue // conclude compares, and says so
		}
		o, now := in.GetOutcome(), r.GetStatus()
		if now == o.GetProviderStatus() && newest(n, sightRead, r.GetRefundId()).GetStatus() == 0 {
			continue // as it was made
		}
		if newest(n, sightRead, r.GetRefundId()).GetStatus() != now {
			n.Sightings = append(n.Sightings, &amendsv1.Sighting{Kind: sightRead, RefundId: r.GetRefundId(), Status: now, At: timestamppb.New(at)})
			changed = true
		}
		if next := moved(o.GetProviderStatus(), now); next != o.GetProviderStatus() {
			o.ProviderStatus, changed = next, true
			if o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_REFUSED && !dead(next) {
				o.Class, o.Reason = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, ReasonRevived
			}
		}
	}
	if !changed {
		return nil, nil
	}
	if over := len(n.GetSightings()) - MaxSightings; over > 0 {
		n.Sightings = n.Sightings[over:]
	}
	if err := seal(n); err != nil {
		return nil, err
	}
	return n, nil
}

// moved gives the status that follows from what was known and what is read now.
func moved(had, now amendsv1.RefundStatus) amendsv1.RefundStatus {
	switch {
	case now == amendsv1.RefundStatus_REFUND_STATUS_UNSPECIFIED, now == amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN:
		return had
	case had == amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED && !dead(now):
		return had
	}
	return now
}

// holder gives the intent whose outcome a refund is, or nil.
func holder(e *amendsv1.EffectEntry, refundID string) *amendsv1.EffectIntent {
	for _, in := range e.GetIntents() {
		if refundID != "" && in.GetOutcome().GetRefundId() == refundID {
			return in
		}
	}
	return nil
}

// newest gives the last sighting of a kind of a refund, or nil.
func newest(e *amendsv1.EffectEntry, kind, refundID string) *amendsv1.Sighting {
	for i := len(e.GetSightings()) - 1; i >= 0; i-- {
		if s := e.GetSightings()[i]; s.GetKind() == kind && s.GetRefundId() == refundID {
			return s
		}
	}
	return nil
}
