package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// Fault is what happens to one call of Create.
type Fault int

// The faults.
const (
	// None lets the call through.
	None Fault = iota
	// NotSent: provably nothing left the process.
	NotSent
	// Busy: the provider turns the call away unread.
	Busy
	// LostBefore: the call never arrives, and the caller cannot know.
	LostBefore
	// LostAfter: the refund is made, and its answer is lost.
	LostAfter
	// Late: the answer is lost; the call is still under way, and made when
	// Arrive lets it.
	Late
)

// Memory is a payments provider in this process. It keeps idempotency keys for
// a window, or none. It is safe for concurrent use.
type Memory struct {
	now      func() time.Time
	promises provider.Promises

	mu     sync.Mutex
	orders map[string]*provider.Order
	made   []place
	keys   map[string]use
	next   int
	calls  []Call
	under  []Call
	fault  func(c Call) Fault
	outage func(op string) error
	status amendsv1.RefundStatus
	lax    bool
}

// Call is one call of Create as the provider saw it.
type Call struct {
	Key  string
	Body string
	At   time.Time
}

// place is where a refund is, in the order in which they came to be.
type place struct{ tenant, order, refund string }

// pageSize is small, so that a listing has pages.
const pageSize = 10

type use struct {
	body   string
	refund *amendsv1.Refund
	at     time.Time
}

var (
	_ provider.Provider = (*Memory)(nil)
	_ provider.Lister   = (*Memory)(nil)
)

// NewMemory gives a provider without orders, on a clock.
func NewMemory(now func() time.Time, p provider.Promises) *Memory {
	return &Memory{
		now: now, promises: p, orders: map[string]*provider.Order{}, keys: map[string]use{}, next: 5521,
		fault: func(Call) Fault { return None }, outage: func(string) error { return nil }, status: amendsv1.RefundStatus_REFUND_STATUS_PENDING,
	}
}

// SetFault says what happens to calls of Create from now on. The function may
// be called concurrently.
func (m *Memory) SetFault(f func(c Call) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault = f; f == nil {
		m.fault = func(Call) Fault { return None }
	}
}

// SetOutage says which readings ("order", "refund", "list") end in an error.
func (m *Memory) SetOutage(f func(op string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outage = f; f == nil {
		m.outage = func(string) error { return nil }
	}
}

// SetFirstStatus says with which status refunds are made; pending by default.
func (m *Memory) SetFirstStatus(s amendsv1.RefundStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = s
}

// Lax makes a provider that refunds more than was captured when it is asked to,
// so that what is refunded is the caller's doing alone.
func (m *Memory) Lax() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lax = true
}

// Load puts an order on the provider's books, in place of what was there.
func (m *Memory) Load(tenant string, o provider.Order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, id := clone(o), o.Order.GetOrderId()
	m.orders[tenant+"/"+id] = &c
	m.made = slices.DeleteFunc(m.made, func(p place) bool { return p.tenant == tenant && p.order == id })
	for _, r := range c.Refunds {
		m.made = append(m.made, place{tenant, id, r.GetRefundId()})
	}
}

// SetStatus moves a refund to a status.
func (m *Memory) SetStatus(refundID string, s amendsv1.RefundStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.orders {
		for _, r := range o.Refunds {
			if r.GetRefundId() == refundID {
				r.Status = s
			}
		}
	}
}

// ByHand makes a refund as somebody in the provider's own console does: without
// a key, and with whatever reference.
func (m *Memory) ByHand(r provider.Request) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made, reason := m.make(r)
	if reason != "" {
		return "", errors.New(reason)
	}
	return made.GetRefundId(), nil
}

// Calls gives every call of Create that arrived, in order.
func (m *Memory) Calls() []Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// UnderWay counts the calls that are late.
func (m *Memory) UnderWay() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.under)
}

// Arrive lets the oldest late call arrive.
func (m *Memory) Arrive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.under) == 0 {
		return
	}
	c := m.under[0]
	m.under = m.under[1:]
	m.arrive(c)
}

// Reader gives the same provider on a credential that may only read.
func (m *Memory) Reader() provider.Provider { return reader{m} }

type reader struct{ *Memory }

func (reader) Create(context.Context, string, []byte, time.Time) provider.Outcome {
	return none("wrong_scope")
}

// Promises are those it was made with.
func (m *Memory) Promises() provider.Promises { return m.promises }

// ReadOrder gives everything on an order.
func (m *Memory) ReadOrder(ctx context.Context, tenant, order string) (provider.Order, error) {
	if err := ctx.Err(); err != nil {
		return provider.Order{}, fmt.Errorf("%w: %w", provider.ErrUnavailable, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.outage("order"); err != nil {
		return provider.Order{}, fmt.Errorf("%w: %w", provider.ErrUnavailable, err)
	}
	o := m.orders[tenant+"/"+order]
	if o == nil {
		return provider.Order{}, provider.ErrNotFound
	}
	return clone(*o), nil
}

// GetRefund gives one refund of a tenant.
func (m *Memory) GetRefund(ctx context.Context, tenant, refundID string) (*amendsv1.Refund, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrUnavailable, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.outage("refund"); err != nil {
		return nil, fmt.Errorf("%w: %w", provider.ErrUnavailable, err)
	}
	for _, p := range m.made {
		if p.tenant == tenant && p.refund == refundID {
			return proto.CloneOf(m.at(p)), nil
		}
	}
	return nil, provider.ErrNotFound
}

// at gives the refund at a place.
func (m *Memory) at(p place) *amendsv1.Refund {
	for _, r := range m.orders[p.tenant+"/"+p.order].Refunds {
		if r.GetRefundId() == p.refund {
			return r
		}
	}
	return nil
}

// ListRefunds gives a page of a tenant's refunds.
func (m *Memory) ListRefunds(ctx context.Context, tenant string, since time.Time, cursor string) (provider.RefundPage, error) {
	if err := ctx.Err(); err != nil {
		return provider.RefundPage{}, fmt.Errorf("%w: %w", provider.ErrUnavailable, err)
	}
	from, err := strconv.Atoi("0" + cursor)
	if err != nil {
		return provider.RefundPage{}, fmt.Errorf("%w: cursor %q", provider.ErrRejected, cursor)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.outage("list"); err != nil {
		return provider.RefundPage{}, fmt.Errorf("%w: %w", provider.ErrUnavailable, err)
	}
	var page provider.RefundPage
	for i := from; i < len(m.made); i++ {
		p := m.made[i]
		r := m.at(p)
		if p.tenant != tenant || r.GetCreatedAt().AsTime().Before(since) {
			continue
		}
		if len(page.Refunds) == pageSize {
			page.Next = strconv.Itoa(i)
			break
		}
		page.Refunds = append(page.Refunds, provider.ListedRefund{OrderID: p.order, Refund: proto.CloneOf(r)})
	}
	return page, nil
}

type wireRequest struct {
	Tenant      string `json:"tenant"`
	OrderID     string `json:"order_id"`
	PaymentID   string `json:"payment_id"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	Reference   string `json:"reference"`
	Reason      string `json:"reason,omitempty"`
}

// Body gives the canonical bytes of a request.
func (m *Memory) Body(r provider.Request) ([]byte, error) {
	if err := ident.Tokens("tenant", r.Tenant, "order", r.OrderID, "payment", r.PaymentID, "currency", r.Amount.GetCurrency()); err != nil {
		return nil, err
	}
	if err := money.Valid(r.Amount); err != nil || r.Amount.GetMinor() == 0 || r.Reference == "" {
		return nil, errors.New("refund body: no amount or no reference")
	}
	return json.Marshal(wireRequest{r.Tenant, r.OrderID, r.PaymentID, r.Amount.GetMinor(), r.Amount.GetCurrency(), r.Reference, r.Reason})
}

// Create makes a refund, or gives the one its key has made.
func (m *Memory) Create(ctx context.Context, key string, body []byte, notAfter time.Time) provider.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Call{Key: key, Body: string(body), At: m.now()}
	switch {
	case key == "":
		return none(provider.ReasonKeyInvalid)
	case ctx.Err() != nil:
		return none("not_sent")
	case !m.now().Before(notAfter):
		return none(provider.ReasonWithdrawn)
	}
	switch m.fault(c) {
	case NotSent:
		return none("not_sent")
	case Busy:
		return none("http_429")
	case LostBefore:
		return lost("connection_lost")
	case LostAfter:
		m.arrive(c)
		return lost("connection_lost")
	case Late:
		m.under = append(m.under, c)
		return lost("timeout")
	default:
		return m.arrive(c)
	}
}

func (m *Memory) arrive(c Call) provider.Outcome {
	m.calls = append(m.calls, c)
	var asked wireRequest
	d := json.NewDecoder(bytes.NewReader([]byte(c.Body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil {
		return refusal("invalid_request")
	}
	scoped := asked.Tenant + "/" + c.Key
	if u, ok := m.keys[scoped]; ok && m.now().Sub(u.at) < m.promises.KeyWindow {
		if u.body != c.Body {
			return refusal(provider.ReasonKeyReused)
		}
		return acknowledged(u.refund, true)
	}
	made, reason := m.make(provider.Request{
		Tenant: asked.Tenant, OrderID: asked.OrderID, PaymentID: asked.PaymentID,
		Amount: money.New(asked.AmountMinor, asked.Currency), Reference: asked.Reference, Reason: asked.Reason,
	})
	if reason != "" {
		return refusal(reason)
	}
	if m.promises.KeyWindow > 0 {
		m.keys[scoped] = use{c.Body, proto.CloneOf(made), m.now()}
	}
	return acknowledged(made, false)
}

// make puts a refund on the books, or says why not.
func (m *Memory) make(r provider.Request) (*amendsv1.Refund, string) {
	o := m.orders[r.Tenant+"/"+r.OrderID]
	if o == nil {
		return nil, "order_not_found"
	}
	i := slices.IndexFunc(o.Captures, func(c *amendsv1.Capture) bool { return c.GetPaymentId() == r.PaymentID })
	if i < 0 {
		return nil, "payment_not_found"
	}
	c := o.Captures[i]
	left := c.GetAmount().GetMinor()
	for _, have := range o.Refunds {
		if have.GetPaymentId() == r.PaymentID && !Dead(have.GetStatus()) {
			left -= have.GetAmount().GetMinor()
		}
	}
	blocked := slices.ContainsFunc(o.Disputes, func(d *amendsv1.Dispute) bool {
		return d.GetPaymentId() == r.PaymentID && d.GetStatus() != amendsv1.DisputeStatus_DISPUTE_STATUS_WON && d.GetStatus() != amendsv1.DisputeStatus_DISPUTE_STATUS_CLOSED
	})
	switch {
	case r.Amount.GetMinor() <= 0:
		return nil, "amount_not_positive"
	case r.Amount.GetCurrency() != c.GetAmount().GetCurrency():
		return nil, "currency_mismatch"
	case blocked:
		return nil, "disputed"
	case !c.GetSettled():
		return nil, "not_refundable"
	case r.Amount.GetMinor() > left && !m.lax:
		return nil, "amount_exceeds_remaining"
	}
	made := &amendsv1.Refund{
		RefundId: "rf_" + strconv.Itoa(m.next), PaymentId: r.PaymentID, Amount: proto.CloneOf(r.Amount), Status: m.status,
		CreatedAt: timestamppb.New(m.now()), Reference: r.Reference,
	}
	m.next++
	o.Refunds = append(o.Refunds, made)
	m.made = append(m.made, place{r.Tenant, r.OrderID, made.GetRefundId()})
	return made, ""
}
