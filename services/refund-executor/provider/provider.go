package provider

import (
	"context"
	"time"

	"github.com/amends-dev/amends/internal/payments"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// What a reading can end as, besides an answer; tested with errors.Is.
var (
	// ErrNotFound: the tenant has no such order or refund.
	ErrNotFound = payments.ErrNotFound
	// ErrUnauthorized: the key is unknown or may not read this.
	ErrUnauthorized = payments.ErrUnauthorized
	// ErrUnavailable: no complete answer came; trying again may help.
	ErrUnavailable = payments.ErrUnavailable
	// ErrRejected: the request itself was refused; trying again will not help.
	ErrRejected = payments.ErrRejected
)

// Reason codes of an outcome that callers are told apart by. Others are the
// provider's own.
const (
	// ReasonKeyReused: the key was used with other bytes; always REFUSED.
	ReasonKeyReused = "idempotency_key_reused"
	// ReasonWithdrawn: the call had not left the process at notAfter; always
	// NO_EFFECT.
	ReasonWithdrawn = "withdrawn"
	// ReasonKeyInvalid: there is no usable key; nothing was sent.
	ReasonKeyInvalid = "key_invalid"
)

// Provider is a payments provider as the executor uses it, with one credential.
// It is safe for concurrent use, and every call is bounded in time.
type Provider interface {
	// Promises says what holds for every call.
	Promises() Promises
	// ReadOrder gives everything on an order, complete, at one moment after
	// the call began.
	ReadOrder(ctx context.Context, tenant, order string) (Order, error)
	// GetRefund gives one refund of a tenant as it stands now.
	GetRefund(ctx context.Context, tenant, refundID string) (*amendsv1.Refund, error)
	// Body gives the canonical bytes of a request: a function of what is
	// refunded and of nothing else, so that a repeat is byte-equal.
	Body(r Request) ([]byte, error)
	// Create asks for the refund that body describes, at most once, under an
	// idempotency key. Of what has not left the process at notAfter nothing
	// ever does.
	Create(ctx context.Context, key string, body []byte, notAfter time.Time) Outcome
}

// Promises are what a provider holds to.
type Promises struct {
	// KeyWindow is how long a key is remembered from its first use; 0 says
	// that none is kept, so a repeat would be a second refund.
	KeyWindow time.Duration
	// CallTimeout is the longest a call stays under way: what Create has not
	// been answered by then is given up, and the provider does not begin it
	// any more.
	CallTimeout time.Duration
}

// Order is an order with everything on it.
type Order struct {
	Order    *amendsv1.Order
	Captures []*amendsv1.Capture
	// Refunds are all refunds of the order, whoever made them.
	Refunds  []*amendsv1.Refund
	Disputes []*amendsv1.Dispute
}

// Request is one refund of one payment.
type Request struct {
	Tenant    string
	OrderID   string
	PaymentID string
	Amount    *amendsv1.Money
	// Reference is how we find the refund again: its idempotency key.
	Reference string
	// Reason is a code such as duplicate_capture; it may be empty.
	Reason string
}

// Outcome is what one call came to.
type Outcome struct {
	Class amendsv1.EffectClass
	// RefundID and Status are set when Class is ACKNOWLEDGED. The status is
	// the provider's at creation; only succeeded means that money moved.
	RefundID string
	Status   amendsv1.RefundStatus
	// Replayed says that the provider had made the refund in an earlier call.
	Replayed bool
	// Reason is a code: the provider's own, or one of the adapter.
	Reason string
	// Err is what went wrong on the way, for logs; never a basis for decisions.
	Err error
}
