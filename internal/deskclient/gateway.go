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

// View gives a case as its customer sees it. customer is empty unless the
// channel names customers.
func (g *Gateway) View(ctx context.Context, caseID, customer string) (deskapi.View, error) {
	var out deskapi.View
	err := g.api.call(ctx, http.MethodGet, deskapi.CasePath(caseID), map[string]string{deskapi.HeaderCustomer: customer}, nil, &out)
	return out, err
}
