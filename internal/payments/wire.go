package payments

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// The provider's records. Fields this version does not know are passed over.

type wireOrder struct {
	OrderID    string  `json:"order_id"`
	TotalMinor int64   `json:"total_minor"`
	Currency   string  `json:"currency"`
	PlacedAt   *string `json:"placed_at"`
}

func (o wireOrder) order() *amendsv1.Order {
	return &amendsv1.Order{OrderId: o.OrderID, Total: amount(o.TotalMinor, o.Currency), PlacedAt: moment(o.PlacedAt)}
}

type wireCapture struct {
	PaymentID   string  `json:"payment_id"`
	AmountMinor int64   `json:"amount_minor"`
	Currency    string  `json:"currency"`
	Status      string  `json:"status"`
	Captured    bool    `json:"captured"`
	Settled     bool    `json:"settled"`
	CapturedAt  *string `json:"captured_at"`
	SettledAt   *string `json:"settled_at"`
	Method      string  `json:"method"`
}

func (c wireCapture) capture() *amendsv1.Capture {
	return &amendsv1.Capture{
		PaymentId: c.PaymentID, Amount: amount(c.AmountMinor, c.Currency), Status: CaptureStatus(c.Status),
		Captured: c.Captured, Settled: c.Settled, CapturedAt: moment(c.CapturedAt), SettledAt: moment(c.SettledAt),
		Method: c.Method,
	}
}

type wireRefund struct {
	RefundID    string  `json:"refund_id"`
	PaymentID   string  `json:"payment_id"`
	AmountMinor int64   `json:"amount_minor"`
	Currency    string  `json:"currency"`
	Status      string  `json:"status"`
	Reference   string  `json:"reference"`
	CreatedAt   *string `json:"created_at"`
}

func (r wireRefund) refund() *amendsv1.Refund {
	return &amendsv1.Refund{
		RefundId: r.RefundID, PaymentId: r.PaymentID, Amount: amount(r.AmountMinor, r.Currency),
		Status: RefundStatus(r.Status), CreatedAt: moment(r.CreatedAt), Reference: r.Reference,
	}
}

type wireDispute struct {
	DisputeID string `json:"dispute_id"`
	PaymentID string `json:"payment_id"`
	Status    string `json:"status"`
}

func (d wireDispute) dispute() *amendsv1.Dispute {
	return &amendsv1.Dispute{DisputeId: d.DisputeID, PaymentId: d.PaymentID, Status: DisputeStatus(d.Status)}
}

type wireSettlement struct {
	PaymentID string  `json:"payment_id"`
	Settled   bool    `json:"settled"`
	SettledAt *string `json:"settled_at"`
}

func (s wireSettlement) settlement() PaymentSettlement {
	return PaymentSettlement{PaymentID: s.PaymentID, Settled: s.Settled, SettledAt: moment(s.SettledAt)}
}

var captureStatuses = map[string]amendsv1.CaptureStatus{
	"authorized": amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED,
	"captured":   amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED,
	"settled":    amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED,
	"voided":     amendsv1.CaptureStatus_CAPTURE_STATUS_VOIDED,
	"failed":     amendsv1.CaptureStatus_CAPTURE_STATUS_FAILED,
}

var refundStatuses = map[string]amendsv1.RefundStatus{
	"pending":         amendsv1.RefundStatus_REFUND_STATUS_PENDING,
	"succeeded":       amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED,
	"failed":          amendsv1.RefundStatus_REFUND_STATUS_FAILED,
	"canceled":        amendsv1.RefundStatus_REFUND_STATUS_CANCELED,
	"requires_action": amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION,
}

var disputeStatuses = map[string]amendsv1.DisputeStatus{
	"open":   amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN,
	"won":    amendsv1.DisputeStatus_DISPUTE_STATUS_WON,
	"lost":   amendsv1.DisputeStatus_DISPUTE_STATUS_LOST,
	"closed": amendsv1.DisputeStatus_DISPUTE_STATUS_CLOSED,
}

// CaptureStatus gives the desk's value of a provider's status, or unknown.
func CaptureStatus(s string) amendsv1.CaptureStatus {
	return known(captureStatuses, s, amendsv1.CaptureStatus_CAPTURE_STATUS_UNKNOWN)
}

// RefundStatus gives the desk's value of a provider's status, or unknown.
func RefundStatus(s string) amendsv1.RefundStatus {
	return known(refundStatuses, s, amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN)
}

// DisputeStatus gives the desk's value of a provider's status, or unknown.
func DisputeStatus(s string) amendsv1.DisputeStatus {
	return known(disputeStatuses, s, amendsv1.DisputeStatus_DISPUTE_STATUS_UNKNOWN)
}

func known[T any](values map[string]T, s string, unknown T) T {
	if v, ok := values[s]; ok {
		return v
	}
	return unknown
}

func amount(minor int64, currency string) *amendsv1.Money {
	return &amendsv1.Money{Minor: minor, Currency: currency}
}

// moment reads a time; one that cannot be read is a time the evidence lacks.
func moment(s *string) *timestamppb.Timestamp {
	if s == nil {
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, *s)
	if err != nil {
		return nil
	}
	return timestamppb.New(t)
}

func convert[W, T any](wire []W, one func(W) T) []T {
	out := make([]T, len(wire))
	for i, w := range wire {
		out[i] = one(w)
	}
	return out
}
