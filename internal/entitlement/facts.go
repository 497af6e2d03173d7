package entitlement

import (
	"strings"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// refundFacts tells of the refunds that exist, one claim each.
func (l *ledger) refundFacts() []*amendsv1.Claim {
	var out []*amendsv1.Claim
	for _, r := range l.refunds {
		out = append(out, RefundClaim(r.GetRefundId(), r.GetAmount(), r.GetStatus()))
	}
	return out
}

// RefundClaim states that a refund exists, with the provider's own status.
func RefundClaim(id string, amount *amendsv1.Money, status amendsv1.RefundStatus) *amendsv1.Claim {
	return &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS, Amount: amount, RefundId: id, RefundStatus: status}
}

// paymentFacts tells how many settled payments there are when they are equal.
func (l *ledger) paymentFacts() []*amendsv1.Claim {
	if len(l.settled) == 0 {
		return nil
	}
	first := l.settled[0].GetAmount()
	for _, c := range l.settled {
		if !money.Equal(c.GetAmount(), first) {
			return l.splitFacts()
		}
	}
	return []*amendsv1.Claim{{
		Kind: amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND, Amount: first, Count: uint32(len(l.settled)), //nolint:gosec // at most 64 captures
	}}
}

// holdFacts tells of payments that were not taken, or not settled yet.
func (l *ledger) holdFacts() []*amendsv1.Claim {
	var out []*amendsv1.Claim
	for _, c := range l.waiting {
		if c.GetStatus() == amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED {
			out = append(out, &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN, Amount: c.GetAmount()})
		} else {
			out = append(out, claim(amendsv1.ClaimKind_CLAIM_KIND_EVIDENCE_PENDING))
		}
	}
	return out
}

// splitFacts tells which payments make up the order's total.
func (l *ledger) splitFacts() []*amendsv1.Claim {
	var out []*amendsv1.Claim
	for _, c := range l.settled {
		out = append(out, &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART, Amount: c.GetAmount(), Method: MethodWord(c.GetMethod())})
	}
	return append(out, &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL, Amount: l.total})
}

// MethodWord gives the customer-facing word for a provider's method name. The
// name itself can hold card digits and is never shown.
func MethodWord(method string) string {
	kind, _, _ := strings.Cut(strings.ToLower(method), "_")
	switch kind {
	case "card":
		return "card"
	case "giftcard":
		return "gift card"
	case "upi":
		return "UPI"
	case "wallet":
		return "wallet"
	case "netbanking", "bank":
		return "bank transfer"
	}
	return "payment"
}
