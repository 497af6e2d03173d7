package sandboxtest

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
)

// The tokens of the API keys.
const (
	VerifyOwnerKey = "test-verify-owner"
	ReadKey        = "test-read"
	RefundWriteKey = "test-refund-write"
	AdminKey       = "test-admin"
)

// Keys are the same keys as they are configured.
func Keys() []sandbox.Key {
	return []sandbox.Key{
		{Name: "verify-owner", Scope: sandbox.ScopeVerifyOwner, SHA256: sandbox.HashKey(VerifyOwnerKey)},
		{Name: "read", Scope: sandbox.ScopeRead, SHA256: sandbox.HashKey(ReadKey)},
		{Name: "refund-write", Scope: sandbox.ScopeRefundWrite, SHA256: sandbox.HashKey(RefundWriteKey)},
		{Name: "admin", Scope: sandbox.ScopeAdmin, SHA256: sandbox.HashKey(AdminKey)},
	}
}

// Sandbox is a running sandbox.
type Sandbox struct {
	*sandbox.Server
	Config sandbox.Config
	Clock  *Clock
	Admin  *sandbox.Admin
}

// Start runs a sandbox until the test ends. edit changes its configuration.
func Start(tb testing.TB, edit ...func(*sandbox.Config)) *Sandbox {
	tb.Helper()
	clock := NewClock(time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC))
	c := sandbox.Config{File: filepath.Join(tb.TempDir(), "sandbox.jsonl"), Keys: Keys(), Now: clock.Now}
	for _, e := range edit {
		e(&c)
	}
	s, err := sandbox.Start(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &Sandbox{Server: s, Config: c, Clock: clock, Admin: sandbox.NewAdmin(s.URL, AdminKey)}
}

// Load merges a ledger.
func (s *Sandbox) Load(tb testing.TB, l sandbox.Ledger) {
	tb.Helper()
	if err := s.Admin.Load(tb.Context(), l); err != nil {
		tb.Fatal(err)
	}
}

// Ledger reads everything back.
func (s *Sandbox) Ledger(tb testing.TB) sandbox.Ledger {
	tb.Helper()
	l, err := s.Admin.Ledger(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Clock is a clock that a test sets.
type Clock struct{ ns atomic.Int64 }

// NewClock gives a clock that stands at a moment.
func NewClock(at time.Time) *Clock {
	c := new(Clock)
	c.ns.Store(at.UnixNano())
	return c
}

// Now gives the moment the clock stands at.
func (c *Clock) Now() time.Time { return time.Unix(0, c.ns.Load()).UTC() }

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }

// Duplicate is the founding case: order 8472 of cust_5519 in tenant acme-in,
// paid twice, both captures settled.
func Duplicate() sandbox.Ledger {
	at := func(day, hour, minute, second int) *time.Time {
		t := time.Date(2026, 3, day, hour, minute, second, 0, time.UTC)
		return &t
	}
	capture := func(payment string, second int) sandbox.Capture {
		return sandbox.Capture{
			PaymentID: payment, OrderID: "8472", Tenant: "acme-in", AmountMinor: 200000, Currency: "INR",
			Status: "settled", Captured: true, Settled: true,
			CapturedAt: at(10, 9, 0, second), SettledAt: at(11, 2, 0, 0), Method: "card_visa_4417",
		}
	}
	return sandbox.Ledger{
		Orders: []sandbox.Order{{
			OrderID: "8472", Tenant: "acme-in", CustomerID: "cust_5519",
			TotalMinor: 200000, Currency: "INR", PlacedAt: *at(10, 9, 0, 0),
		}},
		Captures: []sandbox.Capture{capture("pay_8472_a", 2), capture("pay_8472_b", 7)},
	}
}

// Hold is the same order with the second payment only authorised.
func Hold() sandbox.Ledger {
	l := Duplicate()
	c := &l.Captures[1]
	c.Status, c.Captured, c.Settled, c.CapturedAt, c.SettledAt = "authorized", false, false, nil, nil
	return l
}
