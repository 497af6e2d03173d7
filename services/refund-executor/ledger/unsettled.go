package ledger

import amendsv1 "github.com/amends-dev/amends/proto/amends/v1"

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
