package refunds

import (
	"context"
	"fmt"

	"github.com/amends-dev/amends/internal/payments"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// Adapter is the provider's API on one credential: what package payments can
// read of it, and the client that makes refunds.
type Adapter struct {
	*Client
	reads    *payments.Client
	promises provider.Promises
}

var _ provider.Provider = (*Adapter)(nil)

// Open gives the adapter; it connects when it is used.
func Open(c Config) (*Adapter, error) {
	write, err := New(c)
	if err != nil {
		return nil, err
	}
	reads, err := payments.New(payments.Config{URL: c.URL, Key: c.Key, Timeout: c.Timeout})
	if err != nil {
		return nil, fmt.Errorf("refund client: %w", err)
	}
	return &Adapter{Client: write, reads: reads, promises: provider.Promises{KeyWindow: c.KeyWindow, CallTimeout: write.timeout}}, nil
}

// Close lets go of idle connections.
func (a *Adapter) Close() {
	a.Client.Close()
	a.reads.Close()
}

// Promises are those of the configuration.
func (a *Adapter) Promises() provider.Promises { return a.promises }

// ReadOrder gives everything on an order in one answer.
func (a *Adapter) ReadOrder(ctx context.Context, tenant, order string) (provider.Order, error) {
	r, err := a.reads.ReadOrder(ctx, tenant, order)
	if err != nil {
		return provider.Order{}, err
	}
	return provider.Order{Order: r.Order, Captures: r.Captures, Refunds: r.Refunds, Disputes: r.Disputes}, nil
}

// GetRefund gives one refund of a tenant.
func (a *Adapter) GetRefund(ctx context.Context, tenant, refundID string) (*amendsv1.Refund, error) {
	r, err := a.reads.GetRefund(ctx, tenant, refundID)
	if err != nil {
		return nil, err
	}
	return r.Refund, nil
}

// Body gives the canonical bytes of a request.
func (a *Adapter) Body(r provider.Request) ([]byte, error) { return Body(r) }
