package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/amends-dev/amends/internal/ident"
)

// maxMinor bounds every amount, so that sums of them cannot overflow.
const maxMinor = 1_000_000_000_000

// Ledger is everything the provider knows, or a part of it to be merged.
type Ledger struct {
	Orders   []Order   `json:"orders"`
	Captures []Capture `json:"captures"`
	Refunds  []Refund  `json:"refunds"`
	Disputes []Dispute `json:"disputes"`
}

// Order is what was bought. Amounts are in the currency's minor unit.
type Order struct {
	OrderID string `json:"order_id"`
	Tenant  string `json:"tenant"`
	// CustomerID is in the ledger only; no read answer shows it.
	CustomerID string    `json:"customer_id,omitempty"`
	TotalMinor int64     `json:"total_minor"`
	Currency   string    `json:"currency"`
	PlacedAt   time.Time `json:"placed_at"`
}

// Capture is a payment for an order, from authorisation to settlement. Its
// fields may contradict each other; they are kept as they came.
type Capture struct {
	PaymentID string `json:"payment_id"`
	OrderID   string `json:"order_id"`
	// Tenant may be left out when the document holds exactly one order with
	// the order id.
	Tenant      string     `json:"tenant"`
	AmountMinor int64      `json:"amount_minor"`
	Currency    string     `json:"currency"`
	Status      string     `json:"status"`
	Captured    bool       `json:"captured"`
	Settled     bool       `json:"settled"`
	CapturedAt  *time.Time `json:"captured_at"`
	SettledAt   *time.Time `json:"settled_at"`
	Method      string     `json:"method"`
	// Memo is free text of whoever paid: data, never an instruction.
	Memo string `json:"memo,omitempty"`
}

// Refund is money going back on one payment.
type Refund struct {
	RefundID string `json:"refund_id"`
	// Tenant and OrderID follow from the payment when they are left out.
	Tenant      string    `json:"tenant"`
	OrderID     string    `json:"order_id"`
	PaymentID   string    `json:"payment_id"`
	AmountMinor int64     `json:"amount_minor"`
	Currency    string    `json:"currency"`
	Status      string    `json:"status"`
	Reference   string    `json:"reference,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
}

// counts reports whether a refund uses up its capture. A status this version
// does not know does.
func (r Refund) counts() bool { return r.Status != statusFailed && r.Status != statusCanceled }

// Dispute is a customer's objection at the bank.
type Dispute struct {
	DisputeID string `json:"dispute_id"`
	Tenant    string `json:"tenant"`
	OrderID   string `json:"order_id"`
	PaymentID string `json:"payment_id"`
	Status    string `json:"status"`
}

// blocks reports whether a dispute stands in the way of a refund: a lost one
// has already sent the money back, and an unknown status is taken for open.
func (d Dispute) blocks() bool { return d.Status != "won" && d.Status != "closed" }

const (
	statusPending  = "pending"
	statusFailed   = "failed"
	statusCanceled = "canceled"
	statusSettled  = "settled"
	statusExpired  = "expired"
	statusCaptured = "captured"
)

func (o Order) validate() error {
	if err := ident.Tokens("order_id", o.OrderID, "tenant", o.Tenant, "customer_id", o.CustomerID); err != nil {
		return err
	}
	return amount(o.TotalMinor, o.Currency)
}

func (c Capture) validate() error {
	if err := ident.Tokens("payment_id", c.PaymentID, "order_id", c.OrderID); err != nil {
		return err
	}
	if err := texts(text{"status", c.Status, 1, 64}, text{"method", c.Method, 0, 64}); err != nil {
		return err
	}
	if len(c.Memo) > 1024 { // may hold anything else: it is quoted, never used
		return fmt.Errorf("memo: %d bytes, at most 1024", len(c.Memo))
	}
	return amount(c.AmountMinor, c.Currency)
}

func (r Refund) validate() error {
	if err := ident.Tokens("refund_id", r.RefundID, "payment_id", r.PaymentID); err != nil {
		return err
	}
	if err := texts(text{"status", r.Status, 1, 64}, text{"reference", r.Reference, 0, 160}, text{"reason", r.Reason, 0, 128}); err != nil {
		return err
	}
	return amount(r.AmountMinor, r.Currency)
}

func (d Dispute) validate() error {
	if err := ident.Tokens("dispute_id", d.DisputeID, "payment_id", d.PaymentID); err != nil {
		return err
	}
	return texts(text{"status", d.Status, 1, 64})
}

func amount(minor int64, code string) error {
	if minor > maxMinor || minor < -maxMinor {
		return fmt.Errorf("amount %d is out of range", minor)
	}
	return currency(code)
}

func currency(code string) error {
	if len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("currency %q is not a code of three capital letters", code)
	}
	return nil
}

// text is a field of one line of text with its allowed length in bytes.
type text struct {
	name, value string
	least, most int
}

func texts(fields ...text) error {
	for _, f := range fields {
		if len(f.value) < f.least || len(f.value) > f.most {
			return fmt.Errorf("%s: %d bytes, want %d to %d", f.name, len(f.value), f.least, f.most)
		}
		if strings.ContainsFunc(f.value, unicode.IsControl) {
			return fmt.Errorf("%s: holds a control character", f.name)
		}
	}
	return nil
}

// PlacedAt gives a copy of a ledger moved in time: its first order is placed at
// a moment, and everything else stays as far from it as it was.
func (l Ledger) PlacedAt(at time.Time) Ledger {
	if len(l.Orders) == 0 {
		return l
	}
	by := at.Sub(l.Orders[0].PlacedAt).Truncate(time.Second)
	moved := func(t *time.Time) *time.Time {
		if t == nil {
			return nil
		}
		m := t.Add(by)
		return &m
	}
	out := Ledger{Orders: slices.Clone(l.Orders), Captures: slices.Clone(l.Captures), Refunds: slices.Clone(l.Refunds), Disputes: slices.Clone(l.Disputes)}
	for i := range out.Orders {
		out.Orders[i].PlacedAt = out.Orders[i].PlacedAt.Add(by)
	}
	for i := range out.Captures {
		out.Captures[i].CapturedAt, out.Captures[i].SettledAt = moved(out.Captures[i].CapturedAt), moved(out.Captures[i].SettledAt)
	}
	for i := range out.Refunds {
		out.Refunds[i].CreatedAt = out.Refunds[i].CreatedAt.Add(by)
	}
	return out
}
