package ledger

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// SightingRead is the kind of a sighting that is a read of ours.
const SightingRead = "read"

// maxSightings are kept, the newest.
const maxSightings = 64

// WriteMoved gives the entry in which the statuses that refunds have at the
// provider now are recorded, each with the sighting of it, or nil when there is
// nothing to record. One that failed is released from the sums.
func WriteMoved(e *amendsv1.EffectEntry, moved []Moved, at time.Time) (*amendsv1.EffectEntry, error) {
	n, changed := reopen(e, e.GetTenant(), e.GetOrderId()), false
	for _, m := range moved {
		in := find(n, m.Key)
		if o := in.GetOutcome(); o.GetRefundId() != m.RefundID || m.RefundID == "" || o.GetProviderStatus() == m.Status {
			continue
		}
		in.Outcome.ProviderStatus = m.Status
		n.Sightings = append(n.Sightings, &amendsv1.Sighting{Kind: SightingRead, RefundId: m.RefundID, Status: m.Status, At: timestamppb.New(at)})
		changed = true
	}
	if !changed {
		return nil, nil
	}
	n.Sightings = n.Sightings[max(len(n.GetSightings())-maxSightings, 0):]
	if err := seal(n); err != nil {
		return nil, err
	}
	return n, nil
}

// Unsettled reports whether something of an entry is still going to change: an
// outcome that is not known, or a refund that is not at its end.
func Unsettled(e *amendsv1.EffectEntry) bool {
	for _, in := range e.GetIntents() {
		o := in.GetOutcome()
		if standing(in) == Doubtful ||
			o.GetRefundId() != "" && !dead(o.GetProviderStatus()) && o.GetProviderStatus() != amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED {
			return true
		}
	}
	return false
}
