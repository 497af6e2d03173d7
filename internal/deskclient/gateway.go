package deskclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/amends-dev/amends/internal/deskapi"
)

// Gateway is a customer channel's client.
type Gateway struct{ api api }

// NewGateway gives a client of the gateway.
func NewGateway(cfg Config) (*Gateway, error) {
	a, err := newAPI(cfg)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return &Gateway{api: a}, nil
}

// Post is a new case.
type Post struct {
	// Key is the Idempotency-Key; a retry repeats it.
	Key     string
	Message string
	// CaseID names the case, where the channel may.
	CaseID string
	// Customer names the customer, where the channel may; else empty.
	Customer string
}

// Post opens a case.
func (g *Gateway) Post(ctx context.Context, p Post) (deskapi.Accepted, error) {
	var out deskapi.Accepted
	body, err := json.Marshal(deskapi.Post{Message: p.Message, CaseID: p.CaseID})
	if err != nil {
		return out, fmt.Errorf("encode a post: %w", err)
	}
	header := map[string]string{deskapi.HeaderIdempotencyKey: p.Key, deskapi.HeaderCustomer: p.Customer}
	err = g.api.call(ctx, http.MethodPost, deskapi.CasesPath, header, body, &out)
	return out, err
}

// Message is a later message on a case.
type Message struct {
	// Key is the Idempotency-Key; a retry repeats it.
	Key     string
	CaseID  string
	Message string
	// Customer names the customer, where the channel may; else empty.
	Customer string
}

// Message adds a message to a case.
func (g *Gateway) Message(ctx context.Context, m Message) (deskapi.AcceptedMessage, error) {
	var out deskapi.AcceptedMessage
	body, err := json.Marshal(deskapi.Message{Message: m.Message})
	if err != nil {
		return out, fmt.Errorf("encode a message: %w", err)
	}
	header := map[string]string{deskapi.HeaderIdempotencyKey: m.Key, deskapi.HeaderCustomer: m.Customer}
	err = g.api.call(ctx, http.MethodPost, deskapi.MessagesPath(m.CaseID), header, body, &out)
	return out, err
}

// Cancel is a customer's withdrawal of a case.
type Cancel struct {
	// Key is the Idempotency-Key; a retry repeats it.
	Key    string
	CaseID string
	// Customer names the customer, where the channel may; else empty.
	Customer string
}

// Cancel withdraws a case. Whether that came in time, the case will show.
func (g *Gateway) Cancel(ctx context.Context, c Cancel) (deskapi.AcceptedMessage, error) {
	var out deskapi.AcceptedMessage
	header := map[string]string{deskapi.HeaderIdempotencyKey: c.Key, deskapi.HeaderCustomer: c.Customer}
	err := g.api.call(ctx, http.MethodPost, deskapi.CancelPath(c.CaseID), header, nil, &out)
	return out, err
}

// View gives a case as its customer sees it. customer is empty unless the
// channel names customers.
func (g *Gateway) View(ctx context.Context, caseID, customer string) (deskapi.View, error) {
	var out deskapi.View
	err := g.api.call(ctx, http.MethodGet, deskapi.CasePath(caseID), map[string]string{deskapi.HeaderCustomer: customer}, nil, &out)
	return out, err
}
