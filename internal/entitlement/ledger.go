package entitlement

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// ledger is one order's payments in the shape the rules read. All sums are in
// the order's currency and in minor units.
type ledger struct {
	total    *amendsv1.Money
	settled  []*amendsv1.Capture // settled, earliest capture first
	waiting  []*amendsv1.Capture // authorised, or captured and not yet settled
	refunds  []*amendsv1.Refund  // not failed or cancelled
	refunded map[string]int64    // per payment
	excess   int64
	disputed bool
}

// newLedger sorts an order's evidence; the reason is not empty when the rules
// do not apply to it at all.
func newLedger(p *amendsv1.PaymentEvidence) (*ledger, string) {
	l := &ledger{total: p.GetOrder().GetTotal(), refunded: map[string]int64{}}
	code := l.total.GetCurrency()
	var settledSum, refundSum int64
	for _, c := range p.GetCaptures() {
		if c.GetAmount().GetCurrency() != code {
			return nil, ReasonCurrency
		}
		switch {
		case c.GetSettled():
			l.settled = append(l.settled, c)
			settledSum += c.GetAmount().GetMinor()
		case c.GetStatus() == amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, c.GetStatus() == amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED:
			l.waiting = append(l.waiting, c)
		}
	}
	for _, r := range p.GetRefunds() {
		if !live(r) {
			continue
		}
		l.refunds = append(l.refunds, r)
		l.refunded[r.GetPaymentId()] += r.GetAmount().GetMinor()
		refundSum += r.GetAmount().GetMinor()
	}
	for _, d := range p.GetDisputes() {
		if d.GetStatus() == amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN {
			l.disputed = true
		}
	}
	slices.SortFunc(l.settled, func(a, b *amendsv1.Capture) int {
		return cmp.Or(a.GetCapturedAt().AsTime().Compare(b.GetCapturedAt().AsTime()), cmp.Compare(a.GetPaymentId(), b.GetPaymentId()))
	})
	l.excess = settledSum - refundSum - l.total.GetMinor()
	return l, ""
}

func live(r *amendsv1.Refund) bool {
	s := r.GetStatus()
	return s != amendsv1.RefundStatus_REFUND_STATUS_FAILED && s != amendsv1.RefundStatus_REFUND_STATUS_CANCELED
}

// maxTotal keeps every sum of 64 captures or refunds inside an int64.
const maxTotal = math.MaxInt64 / 256

// contradiction names the first way in which a record disagrees with itself or
// cannot be read; empty when it is sound.
func contradiction(p *amendsv1.PaymentEvidence) string {
	if err := money.Valid(p.GetOrder().GetTotal()); err != nil || p.GetOrder().GetTotal().GetMinor() > maxTotal {
		return "order total is not a valid amount"
	}
	seen := map[string]*amendsv1.Capture{}
	for _, c := range p.GetCaptures() {
		id := c.GetPaymentId()
		if seen[id] != nil {
			return fmt.Sprintf("payment %s is listed twice", id)
		}
		seen[id] = c
		if why := captureFault(c); why != "" {
			return fmt.Sprintf("payment %s: %s", id, why)
		}
	}
	ids, per := map[string]bool{}, map[string]int64{}
	for _, r := range p.GetRefunds() {
		c := seen[r.GetPaymentId()]
		switch {
		case ids[r.GetRefundId()]:
			return fmt.Sprintf("refund %s is listed twice", r.GetRefundId())
		case c == nil:
			return fmt.Sprintf("refund %s is on a payment that is not listed", r.GetRefundId())
		case r.GetStatus() == amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN, r.GetStatus() == amendsv1.RefundStatus_REFUND_STATUS_UNSPECIFIED:
			return fmt.Sprintf("refund %s has an unknown status", r.GetRefundId())
		case money.Valid(r.GetAmount()) != nil, r.GetAmount().GetMinor() > maxTotal:
			return fmt.Sprintf("refund %s has no valid amount", r.GetRefundId())
		case r.GetAmount().GetCurrency() != c.GetAmount().GetCurrency():
			return fmt.Sprintf("refund %s is in another currency than its payment", r.GetRefundId())
		}
		ids[r.GetRefundId()] = true
		if live(r) {
			per[r.GetPaymentId()] += r.GetAmount().GetMinor()
		}
		if per[r.GetPaymentId()] > c.GetAmount().GetMinor() {
			return fmt.Sprintf("payment %s is refunded beyond its amount", r.GetPaymentId())
		}
	}
	for _, d := range p.GetDisputes() {
		if d.GetStatus() == amendsv1.DisputeStatus_DISPUTE_STATUS_UNKNOWN || d.GetStatus() == amendsv1.DisputeStatus_DISPUTE_STATUS_UNSPECIFIED {
			return fmt.Sprintf("dispute %s has an unknown status", d.GetDisputeId())
		}
	}
	return ""
}

func captureFault(c *amendsv1.Capture) string {
	if err := money.Valid(c.GetAmount()); err != nil || c.GetAmount().GetMinor() > maxTotal {
		return "not a valid amount"
	}
	type flags struct{ captured, settled bool }
	got := flags{c.GetCaptured(), c.GetSettled()}
	var want flags
	switch c.GetStatus() {
	case amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, amendsv1.CaptureStatus_CAPTURE_STATUS_VOIDED, amendsv1.CaptureStatus_CAPTURE_STATUS_FAILED:
	case amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED:
		want = flags{captured: true}
	case amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED:
		want = flags{captured: true, settled: true}
	default:
		return "unknown status"
	}
	switch {
	case got != want:
		return fmt.Sprintf("status %s but captured=%t settled=%t", c.GetStatus(), got.captured, got.settled)
	case got.settled && (c.GetSettledAt() == nil || c.GetCapturedAt() == nil):
		return "settled without the time of capture and settlement"
	case got.settled && c.GetSettledAt().AsTime().Before(c.GetCapturedAt().AsTime()):
		return "settled before it was captured"
	}
	return ""
}
