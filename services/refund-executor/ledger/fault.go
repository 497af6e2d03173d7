package ledger

import (
	"fmt"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// With amounts and entries within these bounds no sum leaves an int64.
const (
	maxMinor   = 1 << 50
	maxEntries = 1 << 10
)

// fault names the first way in which an order contradicts itself or cannot be
// read; empty when it is sound.
func fault(v View, intents int) string {
	if len(v.Captures)+len(v.Refunds)+len(v.Disputes)+intents > maxEntries {
		return fmt.Sprintf("more than %d entries", maxEntries)
	}
	if !sound(v.Order.GetTotal()) {
		return "order total is not a valid amount"
	}
	captures := make(map[string]*amendsv1.Capture, len(v.Captures))
	for _, c := range v.Captures {
		if captures[c.GetPaymentId()] != nil {
			return fmt.Sprintf("payment %s is listed twice", c.GetPaymentId())
		}
		captures[c.GetPaymentId()] = c
		if why := captureFault(c); why != "" {
			return fmt.Sprintf("payment %s: %s", c.GetPaymentId(), why)
		}
	}
	if why := refundFault(v.Refunds, captures); why != "" {
		return why
	}
	for _, d := range v.Disputes {
		switch d.GetStatus() {
		case amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN, amendsv1.DisputeStatus_DISPUTE_STATUS_WON,
			amendsv1.DisputeStatus_DISPUTE_STATUS_LOST, amendsv1.DisputeStatus_DISPUTE_STATUS_CLOSED:
		default:
			return fmt.Sprintf("dispute %s has an unknown status", d.GetDisputeId())
		}
		if captures[d.GetPaymentId()] == nil {
			return fmt.Sprintf("dispute %s is on a payment that is not listed", d.GetDisputeId())
		}
	}
	return ""
}

func refundFault(refunds []*amendsv1.Refund, captures map[string]*amendsv1.Capture) string {
	seen, taken := map[string]bool{}, map[string]int64{}
	for _, r := range refunds {
		c := captures[r.GetPaymentId()]
		switch {
		case seen[r.GetRefundId()]:
			return fmt.Sprintf("refund %s is listed twice", r.GetRefundId())
		case c == nil:
			return fmt.Sprintf("refund %s is on a payment that is not listed", r.GetRefundId())
		case !sound(r.GetAmount()) || r.GetAmount().GetCurrency() != c.GetAmount().GetCurrency():
			return fmt.Sprintf("refund %s is not a valid amount in its payment's currency", r.GetRefundId())
		}
		seen[r.GetRefundId()] = true
		switch r.GetStatus() {
		case amendsv1.RefundStatus_REFUND_STATUS_FAILED, amendsv1.RefundStatus_REFUND_STATUS_CANCELED:
			continue
		case amendsv1.RefundStatus_REFUND_STATUS_PENDING, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED, amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION:
		default:
			return fmt.Sprintf("refund %s has an unknown status", r.GetRefundId())
		}
		if taken[r.GetPaymentId()] += r.GetAmount().GetMinor(); taken[r.GetPaymentId()] > c.GetAmount().GetMinor() {
			return fmt.Sprintf("payment %s is refunded beyond its amount", r.GetPaymentId())
		}
	}
	return ""
}

func captureFault(c *amendsv1.Capture) string {
	if !sound(c.GetAmount()) {
		return "not a valid amount"
	}
	var captured, settled bool
	switch c.GetStatus() {
	case amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, amendsv1.CaptureStatus_CAPTURE_STATUS_VOIDED, amendsv1.CaptureStatus_CAPTURE_STATUS_FAILED:
	case amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED:
		captured = true
	case amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED:
		captured, settled = true, true
	default:
		return "unknown status"
	}
	if c.GetCaptured() != captured || c.GetSettled() != settled {
		return fmt.Sprintf("status %s but captured=%t settled=%t", c.GetStatus(), c.GetCaptured(), c.GetSettled())
	}
	return ""
}

func sound(m *amendsv1.Money) bool { return money.Valid(m) == nil && m.GetMinor() <= maxMinor }
