package provider

import (
	"context"
	"time"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Lister is a provider that lists a tenant's refunds, as reconciliation needs.
type Lister interface {
	// ListRefunds gives a page of a tenant's refunds, whoever made them.
	// Following Next from the empty cursor to the empty cursor misses none
	// that was made at since or later and was there at the first call.
	ListRefunds(ctx context.Context, tenant string, since time.Time, cursor string) (RefundPage, error)
}

// RefundPage is a part of a tenant's refunds.
type RefundPage struct {
	Refunds []ListedRefund
	// Next is the cursor of the next page, empty at the end.
	Next string
}

// ListedRefund is a refund and the order it belongs to.
type ListedRefund struct {
	OrderID string
	Refund  *amendsv1.Refund
}
