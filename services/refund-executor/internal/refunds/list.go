package refunds

import (
	"context"
	"time"

	"github.com/amends-dev/amends/services/refund-executor/provider"
)

var _ provider.Lister = (*Adapter)(nil)

// ListRefunds gives a page of a tenant's refunds.
func (a *Adapter) ListRefunds(ctx context.Context, tenant string, since time.Time, cursor string) (provider.RefundPage, error) {
	page, err := a.reads.ListTenantRefunds(ctx, tenant, since, cursor)
	if err != nil {
		return provider.RefundPage{}, err
	}
	out := provider.RefundPage{Refunds: make([]provider.ListedRefund, len(page.Refunds)), Next: page.Next}
	for i, r := range page.Refunds {
		out.Refunds[i] = provider.ListedRefund{OrderID: r.OrderID, Refund: r.Refund}
	}
	return out, nil
}
