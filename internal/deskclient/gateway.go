package deskclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

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

// List says which part of a customer's cases is wanted; the zero value is the
// newest of them.
type List struct {
	// Customer names the customer, where the channel may; else empty.
	Customer string
	// Limit is how many cases a page holds; 0 leaves it to the desk.
	Limit int
	// Cursor is Next of the page before.
	Cursor string
	// State, if set, leaves out cases in other states.
	State string
}

// Cases lists a customer's cases, newest first.
func (g *Gateway) Cases(ctx context.Context, l List) (deskapi.CaseList, error) {
	q := url.Values{}
	if l.Limit > 0 {
		q.Set(deskapi.ParamLimit, strconv.Itoa(l.Limit))
	}
	for name, value := range map[string]string{deskapi.ParamCursor: l.Cursor, deskapi.ParamState: l.State} {
		if value != "" {
			q.Set(name, value)
		}
	}
	path := deskapi.CasesPath
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var out deskapi.CaseList
	err := g.api.call(ctx, http.MethodGet, path, map[string]string{deskapi.HeaderCustomer: l.Customer}, nil, &out)
	return out, err
}

// Request gives all cases of one request. customer is empty unless the channel
// names customers.
func (g *Gateway) Request(ctx context.Context, requestID, customer string) (deskapi.Request, error) {
	var out deskapi.Request
	err := g.api.call(ctx, http.MethodGet, deskapi.RequestPath(requestID), map[string]string{deskapi.HeaderCustomer: customer}, nil, &out)
	return out, err
}

// Deliveries gives what became of a case's webhooks, to the channel the case
// came by.
func (g *Gateway) Deliveries(ctx context.Context, caseID, customer string) (deskapi.Deliveries, error) {
	var out deskapi.Deliveries
	err := g.api.call(ctx, http.MethodGet, deskapi.DeliveriesPath(caseID), map[string]string{deskapi.HeaderCustomer: customer}, nil, &out)
	return out, err
}
