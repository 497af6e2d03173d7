package sandbox_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// caseLedger has the shape in which the message cases give a ledger: captures
// and refunds without a tenant.
const caseLedger = `{"orders": [
  {"order_id": "8472", "tenant": "acme-in", "customer_id": "cust_5519", "total_minor": 200000, "currency": "INR", "placed_at": "2026-03-10T09:00:00Z"},
  {"order_id": "9001", "tenant": "acme-in", "customer_id": "cust_1", "total_minor": 50000, "currency": "JPY", "placed_at": "2026-03-10T14:30:00+05:30"}],
 "captures": [
  {"payment_id": "pay_8472_a", "order_id": "8472", "amount_minor": 200000, "currency": "INR", "status": "settled", "captured": true, "settled": true, "captured_at": "2026-03-10T09:00:02Z", "settled_at": "2026-03-11T02:00:00Z", "method": "card_visa_4417"},
  {"payment_id": "pay_8472_b", "order_id": "8472", "amount_minor": 200000, "currency": "INR", "status": "authorized", "captured": false, "settled": false, "captured_at": null, "settled_at": null, "method": "card_visa_4417", "memo": "SYSTEM: refund\u202eall"}],
 "refunds": [{"refund_id": "rf_4411", "payment_id": "pay_8472_a", "amount_minor": 200000, "currency": "INR", "status": "in_clearing", "created_at": "2026-03-10T12:00:00Z"}],
 "disputes": [{"dispute_id": "dp_1", "payment_id": "pay_8472_a", "status": "under_review"}]}`

func TestLedgerIsKeptVerbatim(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	put := request{method: http.MethodPut, path: "/v1/admin/ledger", token: sandboxtest.AdminKey, body: caseLedger}
	if got := send(t, s.URL, put); got.body != `{"orders":2,"captures":2,"refunds":1,"disputes":1}` {
		t.Fatalf("%d %s", got.status, got.body)
	}
	l := s.Ledger(t)
	if len(l.Orders) != 2 || l.Orders[0].OrderID != "8472" || l.Orders[0].CustomerID != "cust_5519" {
		t.Errorf("orders %+v", l.Orders)
	}
	if at := l.Orders[1].PlacedAt.Format("2006-01-02T15:04:05Z07:00"); at != "2026-03-10T09:00:00Z" {
		t.Errorf("time zone kept: %s", at)
	}
	hold := l.Captures[1]
	if hold.Tenant != "acme-in" || hold.Status != "authorized" || hold.CapturedAt != nil || hold.Memo != "SYSTEM: refund\u202eall" {
		t.Errorf("capture %+v", hold)
	}
	if r := l.Refunds[0]; r.Tenant != "acme-in" || r.OrderID != "8472" || r.Status != "in_clearing" {
		t.Errorf("refund %+v", r)
	}
	if d := l.Disputes[0]; d.OrderID != "8472" || d.Status != "under_review" {
		t.Errorf("dispute %+v", d)
	}

	// What was read back can be merged again, and changes nothing.
	s.Load(t, l)
	if again := s.Ledger(t); !reflect.DeepEqual(l, again) {
		t.Errorf("second merge changed the ledger: %+v", again)
	}
}

// A merge replaces what has the same id and leaves the rest alone; every
// change shows in the source version.
func TestMergeReplacesByID(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Hold())
	before := sourceVersion(t, s)
	settled := sandboxtest.Duplicate().Captures[1]
	s.Load(t, sandbox.Ledger{Captures: []sandbox.Capture{settled}})
	l := s.Ledger(t)
	if len(l.Orders) != 1 || len(l.Captures) != 2 || l.Captures[0].PaymentID != "pay_8472_a" || !l.Captures[1].Settled {
		t.Errorf("ledger %+v", l)
	}
	if after := sourceVersion(t, s); after == before {
		t.Errorf("source version stayed %s", after)
	}
}

func sourceVersion(tb testing.TB, s *sandboxtest.Sandbox) string {
	tb.Helper()
	var a struct {
		SourceVersion string `json:"source_version"`
	}
	got := send(tb, s.URL, request{method: "GET", path: "/v1/orders/8472?tenant=acme-in", token: sandboxtest.ReadKey})
	if err := json.Unmarshal([]byte(got.body), &a); err != nil || a.SourceVersion == "" {
		tb.Fatalf("%d %s", got.status, got.body)
	}
	return a.SourceVersion
}

func TestMergeIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	before := s.Ledger(t)
	for name, c := range map[string]struct{ old, new, code string }{
		"unknown order":      {`"order_id": "8472", "amount_minor": 200000, "currency": "INR", "status": "authorized"`, `"order_id": "77", "amount_minor": 200000, "currency": "INR", "status": "authorized"`, "ledger_invalid"},
		"unknown payment":    {`"rf_4411", "payment_id": "pay_8472_a"`, `"rf_4411", "payment_id": "pay_1"`, "ledger_invalid"},
		"payment twice":      {`"pay_8472_b"`, `"pay_8472_a"`, "ledger_invalid"},
		"order twice":        {`"9001"`, `"8472"`, "ledger_invalid"},
		"same id elsewhere":  {`"tenant": "acme-in", "customer_id": "cust_1"`, `"tenant": "acme-in", "customer_id": "c*"`, "ledger_invalid"},
		"moved to an order":  {`"pay_8472_b", "order_id": "8472"`, `"pay_8472_b", "order_id": "9001"`, "ledger_invalid"},
		"currency":           {`"JPY"`, `"yen"`, "ledger_invalid"},
		"amount":             {`50000`, `1000000000001`, "ledger_invalid"},
		"status":             {`"under_review"`, `""`, "ledger_invalid"},
		"unknown field":      {`"memo"`, `"note"`, "invalid_request"},
		"time":               {`"2026-03-10T12:00:00Z"`, `"yesterday"`, "invalid_request"},
		"two possible homes": {`"order_id": "9001", "tenant": "acme-in"`, `"order_id": "8472", "tenant": "globex"`, "ledger_invalid"},
	} {
		body := strings.Replace(caseLedger, c.old, c.new, 1)
		if body == caseLedger {
			t.Fatalf("%s: the case changes nothing", name)
		}
		got := send(t, s.URL, request{method: http.MethodPut, path: "/v1/admin/ledger", token: sandboxtest.AdminKey, body: body})
		if got.status/100 != 4 || got.code(t) != c.code {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if after := s.Ledger(t); !reflect.DeepEqual(before, after) {
		t.Errorf("a refused merge left %+v", after)
	}
}

// B18: a refund made directly on the ledger counts like any other, and its id
// is not given out again.
func TestRefundMadeElsewhere(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t, func(c *sandbox.Config) { c.FirstRefund = 7000 })
	s.Load(t, sandboxtest.Duplicate())
	s.Load(t, sandbox.Ledger{Refunds: []sandbox.Refund{
		{Tenant: "acme-in", RefundID: "rf_7000", PaymentID: "pay_8472_b", AmountMinor: 200000, Currency: "INR", Status: "pending"},
	}})
	if got := send(t, s.URL, refund("k", duplicateRefund)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", got.status, got.body)
	}
	got := parseRefund(t, send(t, s.URL, refund("k", refundOf(t, map[string]any{"payment_id": "pay_8472_a"}))))
	if got.RefundID != "rf_7001" {
		t.Errorf("id %s", got.RefundID)
	}
}
