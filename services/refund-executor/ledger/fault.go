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

// flaw is one way in which an order contradicts itself or cannot be read.
type flaw struct {
	// kind and id name the record: a capture, refund, dispute or the order.
	kind, id string
	// code says what is wrong with it.
	code string
}

func (f *flaw) String() string { return fmt.Sprintf("%s %s: %s", f.kind, f.id, f.code) }

// fault gives the first flaw of an order, nil when it is sound.
func fault(v View, intents int) *flaw {
	if f := unsound(v, intents); f != nil {
		return f
	}
	return overRefunded(v)
}

// unsound gives the first flaw that makes sums over the order meaningless.
func unsound(v View, intents int) *flaw {
	if len(v.Captures)+len(v.Refunds)+len(v.Disputes)+intents > maxEntries {
		return &flaw{"order", v.Order.GetOrderId(), "too_many_entries"}
	}
	if !sound(v.Order.GetTotal()) {
		return &flaw{"order", v.Order.GetOrderId(), "total_invalid"}
	}
	captures := make(map[string]*amendsv1.Capture, len(v.Captures))
	for _, c := range v.Captures {
		code := captureFault(c)
		if captures[c.GetPaymentId()] != nil {
			code = "listed_twice"
		}
		if code != "" {
			return &flaw{"capture", c.GetPaymentId(), code}
		}
		captures[c.GetPaymentId()] = c
	}
	if f := refundFault(v.Refunds, captures); f != nil {
		return f
	}
	for _, d := range v.Disputes {
		switch d.GetStatus() {
		case amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN, amendsv1.DisputeStatus_DISPUTE_STATUS_WON,
			amendsv1.DisputeStatus_DISPUTE_STATUS_LOST, amendsv1.DisputeStatus_DISPUTE_STATUS_CLOSED:
		default:
			return &flaw{"dispute", d.GetDisputeId(), "status_unknown"}
		}
		if captures[d.GetPaymentId()] == nil {
			return &flaw{"dispute", d.GetDisputeId(), "payment_not_listed"}
		}
	}
	return nil
}

func refundFault(refunds []*amendsv1.Refund, captures map[string]*amendsv1.Capture) *flaw {
	seen := map[string]bool{}
	for _, r := range refunds {
		c, code := captures[r.GetPaymentId()], ""
		switch {
		case seen[r.GetRefundId()]:
			code = "listed_twice"
		case c == nil:
			code = "payment_not_listed"
		case !sound(r.GetAmount()) || r.GetAmount().GetCurrency() != c.GetAmount().GetCurrency():
			code = "amount_invalid"
		case !dead(r.GetStatus()) && !standsFor(r.GetStatus()):
			code = "status_unknown"
		}
		if code != "" {
			return &flaw{"refund", r.GetRefundId(), code}
		}
		seen[r.GetRefundId()] = true
	}
	return nil
}

// standsFor reports whether a refund with this status moved money, or will.
func standsFor(s amendsv1.RefundStatus) bool {
	switch s {
	case amendsv1.RefundStatus_REFUND_STATUS_PENDING, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED, amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION:
		return true
	default:
		return false
	}
}

// overRefunded gives the first payment of a sound order that the provider
// itself shows refunded beyond its amount.
func overRefunded(v View) *flaw {
	left := make(map[string]int64, len(v.Captures))
	for _, c := range v.Captures {
		left[c.GetPaymentId()] = c.GetAmount().GetMinor()
	}
	for _, r := range v.Refunds {
		if !standsFor(r.GetStatus()) {
			continue
		}
		if left[r.GetPaymentId()] -= r.GetAmount().GetMinor(); left[r.GetPaymentId()] < 0 {
			return &flaw{"capture", r.GetPaymentId(), "refunded_beyond_its_amount"}
		}
	}
	return nil
}

// captureFault gives the code of what is wrong with a payment.
func captureFault(c *amendsv1.Capture) string {
	if !sound(c.GetAmount()) {
		return "amount_invalid"
	}
	var captured, settled bool
	switch c.GetStatus() {
	case amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, amendsv1.CaptureStatus_CAPTURE_STATUS_VOIDED, amendsv1.CaptureStatus_CAPTURE_STATUS_FAILED:
	case amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED:
		captured = true
	case amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED:
		captured, settled = true, true
	default:
		return "status_unknown"
	}
	if c.GetCaptured() != captured || c.GetSettled() != settled {
		return "status_and_flags_differ"
	}
	return ""
}

func sound(m *amendsv1.Money) bool { return money.Valid(m) == nil && m.GetMinor() <= maxMinor }
