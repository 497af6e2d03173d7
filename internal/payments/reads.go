package payments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Captures is an order with its payments and their disputes.
type Captures struct {
	Order    *amendsv1.Order
	Captures []*amendsv1.Capture
	Disputes []*amendsv1.Dispute
	// SourceVersion names the state of the order that the answer shows.
	SourceVersion string
	// Raw is the answer as it came.
	Raw []byte
}

// Refunds is the complete list of an order's refunds, whoever made them.
type Refunds struct {
	Refunds       []*amendsv1.Refund
	SourceVersion string
	Raw           []byte
}

// Settlement says which payments of an order have settled.
type Settlement struct {
	Payments      []PaymentSettlement
	SourceVersion string
	Raw           []byte
}

// PaymentSettlement is one payment's settlement; SettledAt may be nil.
type PaymentSettlement struct {
	PaymentID string
	Settled   bool
	SettledAt *timestamppb.Timestamp
}

// Refund is one refund as it stands now.
type Refund struct {
	Refund *amendsv1.Refund
	Raw    []byte
}

// OrderRecord is an order with everything on it, at one moment.
type OrderRecord struct {
	Order         *amendsv1.Order
	Captures      []*amendsv1.Capture
	Refunds       []*amendsv1.Refund
	Disputes      []*amendsv1.Dispute
	SourceVersion string
	Raw           []byte
}

// VerifyOwner asks whether an order is this customer's. An unknown order and
// somebody else's are the same no.
func (c *Client) VerifyOwner(ctx context.Context, tenant, customer, order string) (bool, error) {
	if err := tokens("tenant", tenant, "customer", customer, "order", order); err != nil {
		return false, fmt.Errorf("verify owner: %w", err)
	}
	body, err := json.Marshal(map[string]string{"tenant": tenant, "order_id": order, "customer_id": customer})
	if err != nil {
		return false, fmt.Errorf("verify owner: %w", err)
	}
	var answer struct {
		Owner *bool `json:"owner"`
	}
	_, err = c.do(ctx, http.MethodPost, "/v1/orders/verify-owner", body, &answer)
	if err == nil && answer.Owner == nil {
		err = unavailable(errors.New("the answer says neither yes nor no"))
	}
	if err != nil {
		return false, fmt.Errorf("verify owner: %w", err)
	}
	return *answer.Owner, nil
}

// ListCaptures gives an order's payments, authorisations included.
func (c *Client) ListCaptures(ctx context.Context, tenant, order string) (*Captures, error) {
	var a orderAnswer
	raw, err := c.order(ctx, tenant, order, "/captures", &a)
	if err != nil {
		return nil, fmt.Errorf("list captures: %w", err)
	}
	return &Captures{
		Order: a.Order.order(), Captures: convert(a.Captures, wireCapture.capture),
		Disputes: convert(a.Disputes, wireDispute.dispute), SourceVersion: a.SourceVersion, Raw: raw,
	}, nil
}

// ReadOrder gives everything on an order in one answer.
func (c *Client) ReadOrder(ctx context.Context, tenant, order string) (*OrderRecord, error) {
	var a orderAnswer
	raw, err := c.order(ctx, tenant, order, "", &a)
	if err == nil && a.Refunds == nil {
		err = unavailable(errors.New("the answer has no refund list"))
	}
	if err != nil {
		return nil, fmt.Errorf("read order: %w", err)
	}
	return &OrderRecord{
		Order: a.Order.order(), Captures: convert(a.Captures, wireCapture.capture),
		Refunds: convert(a.Refunds, wireRefund.refund), Disputes: convert(a.Disputes, wireDispute.dispute),
		SourceVersion: a.SourceVersion, Raw: raw,
	}, nil
}

// orderAnswer is the answer to both readings of an order. A list that is
// missing is not an empty one: it is checked.
type orderAnswer struct {
	Order         wireOrder     `json:"order"`
	Captures      []wireCapture `json:"captures"`
	Refunds       []wireRefund  `json:"refunds"`
	Disputes      []wireDispute `json:"disputes"`
	SourceVersion string        `json:"source_version"`
}

func (c *Client) order(ctx context.Context, tenant, order, part string, a *orderAnswer) ([]byte, error) {
	if err := tokens("tenant", tenant, "order", order); err != nil {
		return nil, err
	}
	raw, err := c.get(ctx, "/v1/orders/"+order+part, tenant, a)
	if err != nil {
		return nil, err
	}
	if a.Order.OrderID != order || a.Captures == nil || a.Disputes == nil {
		return nil, unavailable(errors.New("the answer is not the order that was asked for"))
	}
	return raw, nil
}

// ListRefunds gives every refund of an order.
func (c *Client) ListRefunds(ctx context.Context, tenant, order string) (*Refunds, error) {
	if err := tokens("tenant", tenant, "order", order); err != nil {
		return nil, fmt.Errorf("list refunds: %w", err)
	}
	var a struct {
		OrderID       string       `json:"order_id"`
		Refunds       []wireRefund `json:"refunds"`
		SourceVersion string       `json:"source_version"`
	}
	raw, err := c.get(ctx, "/v1/orders/"+order+"/refunds", tenant, &a)
	if err == nil && (a.OrderID != order || a.Refunds == nil) {
		err = unavailable(errors.New("the answer is not the list that was asked for"))
	}
	if err != nil {
		return nil, fmt.Errorf("list refunds: %w", err)
	}
	return &Refunds{Refunds: convert(a.Refunds, wireRefund.refund), SourceVersion: a.SourceVersion, Raw: raw}, nil
}

// GetSettlement says which payments of an order have settled, and when.
func (c *Client) GetSettlement(ctx context.Context, tenant, order string) (*Settlement, error) {
	if err := tokens("tenant", tenant, "order", order); err != nil {
		return nil, fmt.Errorf("get settlement: %w", err)
	}
	var a struct {
		OrderID       string           `json:"order_id"`
		Payments      []wireSettlement `json:"payments"`
		SourceVersion string           `json:"source_version"`
	}
	raw, err := c.get(ctx, "/v1/orders/"+order+"/settlement", tenant, &a)
	if err == nil && (a.OrderID != order || a.Payments == nil) {
		err = unavailable(errors.New("the answer is not the settlement that was asked for"))
	}
	if err != nil {
		return nil, fmt.Errorf("get settlement: %w", err)
	}
	return &Settlement{Payments: convert(a.Payments, wireSettlement.settlement), SourceVersion: a.SourceVersion, Raw: raw}, nil
}

// GetRefund gives one refund of a tenant.
func (c *Client) GetRefund(ctx context.Context, tenant, refundID string) (*Refund, error) {
	if err := tokens("tenant", tenant, "refund", refundID); err != nil {
		return nil, fmt.Errorf("get refund: %w", err)
	}
	var a struct {
		Refund wireRefund `json:"refund"`
	}
	raw, err := c.get(ctx, "/v1/refunds/"+refundID, tenant, &a)
	if err == nil && a.Refund.RefundID != refundID {
		err = unavailable(errors.New("the answer is not the refund that was asked for"))
	}
	if err != nil {
		return nil, fmt.Errorf("get refund: %w", err)
	}
	return &Refund{Refund: a.Refund.refund(), Raw: raw}, nil
}
