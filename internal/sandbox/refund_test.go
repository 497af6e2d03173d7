package sandbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

func TestRefundAndItsRepeat(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	first := send(t, s.URL, refund("refund:req-8472:pay_8472_b", duplicateRefund))
	if first.status != http.StatusCreated || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("first: %d %s", first.status, first.body)
	}
	got := parseRefund(t, first)
	want := sandbox.Refund{
		RefundID: "rf_5521", Tenant: "acme-in", OrderID: "8472", PaymentID: "pay_8472_b", AmountMinor: 200000, Currency: "INR",
		Status: "pending", Reference: "refund:req-8472:pay_8472_b", Reason: "duplicate_capture", CreatedAt: s.Clock.Now(),
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// The repeat gives the first answer again, also when the refund has moved on.
	if err := s.Admin.SetRefundStatus(t.Context(), "rf_5521", "succeeded"); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Hour)
	again := send(t, s.URL, refund("refund:req-8472:pay_8472_b", duplicateRefund))
	if again.status != first.status || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeat: %d %v %s", again.status, again.header, again.body)
	}
	now := send(t, s.URL, request{method: "GET", path: "/v1/refunds/rf_5521?tenant=acme-in", token: sandboxtest.ReadKey})
	if status := parseRefund(t, now).Status; status != "succeeded" {
		t.Errorf("it reads as %s", status)
	}
	if n := len(s.Ledger(t).Refunds); n != 1 {
		t.Errorf("%d refunds", n)
	}
}

// B05: the same key with other bytes is a conflict of its own, whatever differs.
func TestReusedKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	send(t, s.URL, refund("k", duplicateRefund))
	for _, body := range []string{
		refundOf(t, map[string]any{"amount_minor": 100}),
		refundOf(t, map[string]any{"payment_id": "pay_8472_a"}),
		refundOf(t, map[string]any{"amount_minor": -1}),
		refundOf(t, map[string]any{"order_id": "none"}),
		duplicateRefund + " ",
	} {
		if got := send(t, s.URL, refund("k", body)); got.status != http.StatusConflict || got.code(t) != "idempotency_key_reused" {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if n := len(s.Ledger(t).Refunds); n != 1 {
		t.Errorf("%d refunds", n)
	}
}

// B63: a key belongs to its API key and tenant, and a refusal does not bind it.
func TestScopeOfAKey(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t, func(c *sandbox.Config) {
		c.Keys = append(c.Keys, sandbox.Key{Name: "second", Scope: sandbox.ScopeRefundWrite, SHA256: sandbox.HashKey("second")})
	})
	s.Load(t, sandboxtest.Duplicate())
	other := sandboxtest.Duplicate()
	other.Orders[0].Tenant = "globex"
	for i := range other.Captures {
		other.Captures[i].Tenant = "globex"
	}
	s.Load(t, other)
	half := refundOf(t, map[string]any{"amount_minor": 100000})

	refused := send(t, s.URL, refund("k", refundOf(t, map[string]any{"amount_minor": 200001})))
	if refused.status != http.StatusUnprocessableEntity {
		t.Fatalf("over-refund: %d %s", refused.status, refused.body)
	}
	second := refund("k", half)
	second.token = "second"
	seen := map[string]bool{}
	for name, q := range map[string]request{
		"corrected":       refund("k", half),
		"another API key": second,
		"another tenant":  refund("k", refundOf(t, map[string]any{"amount_minor": 100000, "tenant": "globex"})),
	} {
		got := send(t, s.URL, q)
		if got.status != http.StatusCreated || got.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
			continue
		}
		seen[parseRefund(t, got).RefundID] = true
	}
	if len(seen) != 3 {
		t.Errorf("refunds %v, want three", seen)
	}
}

// B04: the provider forgets a key after its window; what then protects the
// customer is the look-up, and here the capture's remainder.
func TestKeyIsForgottenAfterItsWindow(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	half := refundOf(t, map[string]any{"amount_minor": 100000})
	first := parseRefund(t, send(t, s.URL, refund("k", half)))
	s.Clock.Advance(24*time.Hour - time.Nanosecond)
	if got := send(t, s.URL, refund("k", half)); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("inside the window: %d %s", got.status, got.body)
	}
	s.Clock.Advance(time.Nanosecond)
	got := send(t, s.URL, refund("k", half))
	if got.status != http.StatusCreated || parseRefund(t, got).RefundID == first.RefundID {
		t.Errorf("after the window: %d %s", got.status, got.body)
	}
	s.Clock.Advance(25 * time.Hour)
	if got := send(t, s.URL, refund("k", half)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("nothing is left: %d %s", got.status, got.body)
	}
}

func TestWhatMayBeRefunded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ledger func(*sandbox.Ledger)
		change map[string]any
		status int
		code   string
	}{
		"in full":              {status: 201},
		"in part":              {change: map[string]any{"amount_minor": 1}, status: 201},
		"too much":             {change: map[string]any{"amount_minor": 200001}, status: 422, code: "amount_exceeds_remaining"},
		"largest number":       {change: map[string]any{"amount_minor": int64(1<<63 - 1)}, status: 422, code: "amount_exceeds_remaining"},
		"zero":                 {change: map[string]any{"amount_minor": 0}, status: 422, code: "amount_not_positive"},
		"negative":             {change: map[string]any{"amount_minor": -200000}, status: 422, code: "amount_not_positive"},
		"other currency":       {change: map[string]any{"currency": "JPY"}, status: 422, code: "currency_mismatch"},
		"no reference":         {change: map[string]any{"reference": ""}, status: 400, code: "invalid_request"},
		"lower-case currency":  {change: map[string]any{"currency": "inr"}, status: 400, code: "invalid_request"},
		"fraction":             {change: map[string]any{"amount_minor": 1.5}, status: 400, code: "invalid_request"},
		"amount as text":       {change: map[string]any{"amount_minor": "200000"}, status: 400, code: "invalid_request"},
		"wild order":           {change: map[string]any{"order_id": "8472.>"}, status: 400, code: "invalid_request"},
		"unknown field":        {change: map[string]any{"metadata": "x"}, status: 400, code: "invalid_request"},
		"unknown order":        {change: map[string]any{"order_id": "1"}, status: 404, code: "order_not_found"},
		"another tenant":       {change: map[string]any{"tenant": "globex"}, status: 404, code: "order_not_found"},
		"unknown payment":      {change: map[string]any{"payment_id": "pay_1"}, status: 404, code: "payment_not_found"},
		"authorised only":      {ledger: func(l *sandbox.Ledger) { *l = sandboxtest.Hold() }, status: 422, code: "not_refundable"},
		"captured, unsettled":  {ledger: func(l *sandbox.Ledger) { l.Captures[1].Status, l.Captures[1].Settled = "captured", false }, status: 422, code: "not_refundable"},
		"contradictory":        {ledger: func(l *sandbox.Ledger) { l.Captures[1].Captured = false }, status: 422, code: "not_refundable"},
		"unknown status":       {ledger: func(l *sandbox.Ledger) { l.Captures[1].Status = "settling" }, status: 422, code: "not_refundable"},
		"open dispute":         {ledger: dispute("pay_8472_b", "open"), status: 422, code: "disputed"},
		"lost dispute":         {ledger: dispute("pay_8472_b", "lost"), status: 422, code: "disputed"},
		"unknown dispute":      {ledger: dispute("pay_8472_b", "in_arbitration"), status: 422, code: "disputed"},
		"won dispute":          {ledger: dispute("pay_8472_b", "won"), status: 201},
		"dispute of the other": {ledger: dispute("pay_8472_a", "open"), status: 201},
		"refunded before":      {ledger: refunded("succeeded", 200000), status: 422, code: "amount_exceeds_remaining"},
		"partly refunded":      {ledger: refunded("pending", 1), status: 422, code: "amount_exceeds_remaining"},
		"unknown refund":       {ledger: refunded("sent_to_bank", 1), status: 422, code: "amount_exceeds_remaining"},
		"failed before":        {ledger: refunded("failed", 200000), status: 201},
		"canceled before":      {ledger: refunded("canceled", 200000), status: 201},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sandboxtest.Start(t)
			l := sandboxtest.Duplicate()
			if c.ledger != nil {
				c.ledger(&l)
			}
			s.Load(t, l)
			got := send(t, s.URL, refund("k", refundOf(t, c.change)))
			if got.status != c.status {
				t.Fatalf("status %d %s, want %d", got.status, got.body, c.status)
			}
			if c.code != "" && got.code(t) != c.code {
				t.Errorf("code in %s, want %s", got.body, c.code)
			}
		})
	}
}

func dispute(payment, status string) func(*sandbox.Ledger) {
	return func(l *sandbox.Ledger) {
		l.Disputes = []sandbox.Dispute{{DisputeID: "dp_1", PaymentID: payment, Status: status}}
	}
}

func refunded(status string, minor int64) func(*sandbox.Ledger) {
	return func(l *sandbox.Ledger) {
		l.Refunds = []sandbox.Refund{{RefundID: "rf_4410", PaymentID: "pay_8472_b", AmountMinor: minor, Currency: "INR", Status: status}}
	}
}

// Two readers of one body must not see two amounts.
func TestBodyIsReadStrictly(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	for name, body := range map[string]string{
		"name twice":       strings.Replace(duplicateRefund, `"currency"`, `"amount_minor":1,"currency"`, 1),
		"other case":       strings.Replace(duplicateRefund, `"amount_minor"`, `"Amount_Minor"`, 1),
		"folded letter":    strings.Replace(duplicateRefund, `"reason"`, `"reaſon"`, 1),
		"two values":       duplicateRefund + duplicateRefund,
		"trailing comma":   strings.Replace(duplicateRefund, `}`, `,}`, 1),
		"list":             "[" + duplicateRefund + "]",
		"nothing":          "",
		"null":             "null",
		"not UTF-8":        strings.Replace(duplicateRefund, "duplicate_capture", "\xff", 1),
		"control in text":  strings.Replace(duplicateRefund, "duplicate_capture", `a\u0000b`, 1),
		"exponent":         strings.Replace(duplicateRefund, "200000", "2e5", 1),
		"number too large": strings.Replace(duplicateRefund, "200000", "9223372036854775808", 1),
	} {
		q := refund("k", body)
		q.header.Set("Content-Type", "application/json")
		if got := send(t, s.URL, q); got.status != http.StatusBadRequest || got.code(t) != "invalid_request" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// B10, B21: many at once, one refund.
func TestSameKeyFromManyAtOnce(t *testing.T) {
	t.Parallel()
	for _, synced := range []bool{false, true} {
		s := sandboxtest.Start(t, func(c *sandbox.Config) { c.Sync = synced })
		s.Load(t, sandboxtest.Duplicate())
		replayed := 0
		for _, r := range atOnce(t, s.URL, 50, func(int) request { return refund("k", duplicateRefund) }) {
			if r.status != http.StatusCreated || parseRefund(t, r).RefundID != "rf_5521" {
				t.Errorf("%d %s", r.status, r.body)
			}
			if r.header.Get("Idempotent-Replayed") == "true" {
				replayed++
			}
		}
		if n := len(s.Ledger(t).Refunds); n != 1 || replayed != 49 {
			t.Errorf("sync %t: %d refunds, %d replayed", synced, n, replayed)
		}
	}
}

// B17: many keys against one capture never exceed it.
func TestOverRefundFromManyAtOnce(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	made := 0
	body := refundOf(t, map[string]any{"amount_minor": 30000})
	for _, r := range atOnce(t, s.URL, 50, func(i int) request { return refund(fmt.Sprint("k", i), body) }) {
		switch {
		case r.status == http.StatusCreated:
			made++
		case r.code(t) != "amount_exceeds_remaining":
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if made != 6 {
		t.Errorf("%d refunds of 30000 on 200000, want 6", made)
	}
}

func atOnce(tb testing.TB, url string, n int, q func(int) request) []response {
	tb.Helper()
	out := make([]response, n)
	errs := make([]error, n)
	barrier := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-barrier
			out[i], errs[i] = trySend(tb, url, q(i))
		})
	}
	close(barrier)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func TestRefundMovesOnLater(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	id := parseRefund(t, send(t, s.URL, refund("k1", duplicateRefund))).RefundID
	if err := s.Admin.SetRefundStatus(t.Context(), id, "failed"); err != nil {
		t.Fatal(err)
	}
	if got := send(t, s.URL, refund("k2", duplicateRefund)); got.status != http.StatusCreated {
		t.Errorf("a failed refund leaves room: %d %s", got.status, got.body)
	}
	if err := s.Admin.SetRefundStatus(t.Context(), id, "succeeded"); err == nil {
		t.Error("the failed refund came back although its room is taken")
	}
	if err := s.Admin.SetRefundStatus(t.Context(), id, "returned_by_bank"); err == nil {
		t.Error("an unknown status counts, so it needs room too")
	}
	if err := s.Admin.SetRefundStatus(t.Context(), id, "canceled"); err != nil {
		t.Error(err)
	}
}
