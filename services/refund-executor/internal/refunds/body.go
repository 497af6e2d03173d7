package refunds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// wireRequest fixes the names and their order in the body.
type wireRequest struct {
	Tenant      string `json:"tenant"`
	OrderID     string `json:"order_id"`
	PaymentID   string `json:"payment_id"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	Reference   string `json:"reference"`
	Reason      string `json:"reason,omitempty"`
}

// Body gives the canonical bytes of a request: a function of what is refunded
// and of nothing else, no time and no attempt, so that a repeat is byte-equal.
func Body(r provider.Request) ([]byte, error) {
	if err := ident.Tokens("tenant", r.Tenant, "order", r.OrderID, "payment", r.PaymentID); err != nil {
		return nil, fmt.Errorf("refund body: %w", err)
	}
	if err := money.Valid(r.Amount); err != nil {
		return nil, fmt.Errorf("refund body: %w", err)
	}
	if r.Amount.GetMinor() == 0 {
		return nil, errors.New("refund body: the amount is zero")
	}
	if !visible(r.Reference, 160) || r.Reason != "" && !visible(r.Reason, 128) {
		return nil, errors.New("refund body: the reference or the reason is not a code")
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(wireRequest{
		Tenant: r.Tenant, OrderID: r.OrderID, PaymentID: r.PaymentID,
		AmountMinor: r.Amount.GetMinor(), Currency: r.Amount.GetCurrency(),
		Reference: r.Reference, Reason: r.Reason,
	})
	if err != nil {
		return nil, fmt.Errorf("refund body: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// once is a request body that is read at most once, not begun after its time,
// and that can be withdrawn as long as it has not been begun: what was never
// read was never sent.
type once struct {
	data  *bytes.Reader
	late  func() bool
	taken atomic.Bool // by the first read or by a withdrawal
	begun bool        // used by the reader alone
	// expired: the first read came too late, and took nothing.
	expired atomic.Bool
}

func newOnce(data []byte, late func() bool) *once {
	return &once{data: bytes.NewReader(data), late: late}
}

var errWithdrawn = errors.New("request body withdrawn")

func (o *once) Read(p []byte) (int, error) {
	if !o.begun {
		// The clock is read as late as can be: the process may have stood
		// still since the call was allowed.
		if o.late() {
			o.expired.Store(true)
		}
		if o.expired.Load() || !o.taken.CompareAndSwap(false, true) {
			return 0, errWithdrawn
		}
		o.begun = true
	}
	return o.data.Read(p)
}

func (o *once) Close() error { return nil }

// withdraw reports whether nothing of the body was sent; nothing will be then.
func (o *once) withdraw() bool { return o.taken.CompareAndSwap(false, true) }
