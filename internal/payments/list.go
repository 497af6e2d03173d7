package payments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// pageSize is how many refunds are asked for at once: so many fit an answer,
// however long their texts.
const pageSize = 200

// RefundPage is a part of a tenant's refunds.
type RefundPage struct {
	Refunds []TenantRefund
	// Next is the cursor of the next page, empty at the end.
	Next string
}

// TenantRefund is a refund and the order it belongs to.
type TenantRefund struct {
	OrderID string
	Refund  *amendsv1.Refund
}

// ListTenantRefunds gives a page of a tenant's refunds, whoever made them, in
// the order in which they came to be. Following Next from the empty cursor to
// the empty cursor misses none that was there at the first call. A zero since
// asks for all; otherwise only those created at it or later are listed.
func (c *Client) ListTenantRefunds(ctx context.Context, tenant string, since time.Time, cursor string) (RefundPage, error) {
	if err := tokens("tenant", tenant); err != nil {
		return RefundPage{}, fmt.Errorf("list refunds of the tenant: %w", err)
	}
	q := url.Values{"tenant": {tenant}, "limit": {strconv.Itoa(pageSize)}}
	if !since.IsZero() {
		q.Set("created_since", since.UTC().Format(time.RFC3339Nano))
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	var a struct {
		Refunds []struct {
			wireRefund
			Tenant  string `json:"tenant"`
			OrderID string `json:"order_id"`
		} `json:"refunds"`
		Next *string `json:"next"` // missing is not the end
	}
	_, err := c.do(ctx, http.MethodGet, "/v1/refunds?"+q.Encode(), nil, &a)
	switch {
	case err != nil:
	case a.Refunds == nil, a.Next == nil:
		err = unavailable(errors.New("the answer is not a page of refunds"))
	case *a.Next != "" && (*a.Next == cursor || len(a.Refunds) == 0): // whoever follows it would not come to an end
		err = unavailable(errors.New("the answer's cursor leads nowhere"))
	}
	if err != nil {
		return RefundPage{}, fmt.Errorf("list refunds of the tenant: %w", err)
	}
	page := RefundPage{Refunds: make([]TenantRefund, len(a.Refunds)), Next: *a.Next}
	for i, r := range a.Refunds {
		if r.Tenant != tenant || r.OrderID == "" || r.RefundID == "" {
			return RefundPage{}, fmt.Errorf("list refunds of the tenant: %w", unavailable(errors.New("the answer is not the list that was asked for")))
		}
		page.Refunds[i] = TenantRefund{OrderID: r.OrderID, Refund: r.refund()}
	}
	return page, nil
}
