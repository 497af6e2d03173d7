package payments_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func client(tb testing.TB, url, key string) *payments.Client {
	tb.Helper()
	c, err := payments.New(payments.Config{URL: url, Key: key})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func TestVerifyOwner(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	c := client(t, s.URL, sandboxtest.VerifyOwnerKey)
	for _, q := range []struct {
		tenant, customer, order string
		want                    bool
	}{
		{"acme-in", "cust_5519", "8472", true},
		{"acme-in", "cust_1", "8472", false},
		{"acme-in", "cust_5519", "9999", false},
		{"globex", "cust_5519", "8472", false},
	} {
		if got, err := c.VerifyOwner(t.Context(), q.tenant, q.customer, q.order); got != q.want || err != nil {
			t.Errorf("%+v: %t, %v", q, got, err)
		}
	}
	// B55: text that could reach another path or query is refused unsent.
	for _, order := range []string{"8472.>", "*", "a b", "", "../admin", "8472?tenant=globex", strings.Repeat("x", 300)} {
		if _, err := c.VerifyOwner(t.Context(), "acme-in", "cust_5519", order); !errors.Is(err, payments.ErrRejected) {
			t.Errorf("order %q: %v", order, err)
		}
	}
}

// odd is the founding order with records that contradict themselves and
// statuses nobody has heard of.
func odd() sandbox.Ledger {
	l := sandboxtest.Duplicate()
	l.Captures[0].Status, l.Captures[0].SettledAt = "settling_tomorrow", nil
	l.Captures[1].Captured = false
	l.Refunds = []sandbox.Refund{
		{RefundID: "rf_1", PaymentID: "pay_8472_a", AmountMinor: 999999, Currency: "JPY", Status: "in_clearing", Reference: "dashboard"},
		{RefundID: "rf_2", PaymentID: "pay_8472_a", AmountMinor: 5, Currency: "INR", Status: "requires_action", CreatedAt: l.Orders[0].PlacedAt},
	}
	l.Disputes = []sandbox.Dispute{{DisputeID: "dp_1", PaymentID: "pay_8472_b", Status: "under_review"}, {DisputeID: "dp_2", PaymentID: "pay_8472_b", Status: "open"}}
	return l
}

func TestOddEvidencePassesThrough(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, odd())
	c := client(t, s.URL, sandboxtest.ReadKey)
	at := func(day, second int, hour int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 3, day, hour, 0, second, 0, time.UTC))
	}
	order := &amendsv1.Order{OrderId: "8472", Total: &amendsv1.Money{Minor: 200000, Currency: "INR"}, PlacedAt: at(10, 0, 9)}
	captures := []*amendsv1.Capture{
		{PaymentId: "pay_8472_a", Amount: &amendsv1.Money{Minor: 200000, Currency: "INR"}, Status: amendsv1.CaptureStatus_CAPTURE_STATUS_UNKNOWN, Captured: true, Settled: true, CapturedAt: at(10, 2, 9), Method: "card_visa_4417"},
		{PaymentId: "pay_8472_b", Amount: &amendsv1.Money{Minor: 200000, Currency: "INR"}, Status: amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED, Captured: false, Settled: true, CapturedAt: at(10, 7, 9), SettledAt: at(11, 0, 2), Method: "card_visa_4417"},
	}
	refunds := []*amendsv1.Refund{
		{RefundId: "rf_1", PaymentId: "pay_8472_a", Amount: &amendsv1.Money{Minor: 999999, Currency: "JPY"}, Status: amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN, Reference: "dashboard", CreatedAt: timestamppb.New(time.Time{})},
		{RefundId: "rf_2", PaymentId: "pay_8472_a", Amount: &amendsv1.Money{Minor: 5, Currency: "INR"}, Status: amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION, CreatedAt: at(10, 0, 9)},
	}
	disputes := []*amendsv1.Dispute{
		{DisputeId: "dp_1", PaymentId: "pay_8472_b", Status: amendsv1.DisputeStatus_DISPUTE_STATUS_UNKNOWN},
		{DisputeId: "dp_2", PaymentId: "pay_8472_b", Status: amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN},
	}

	listed, err := c.ListCaptures(t.Context(), "acme-in", "8472")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "order", []*amendsv1.Order{listed.Order}, []*amendsv1.Order{order})
	same(t, "captures", listed.Captures, captures)
	same(t, "disputes", listed.Disputes, disputes)

	listedRefunds, err := c.ListRefunds(t.Context(), "acme-in", "8472")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "refunds", listedRefunds.Refunds, refunds)

	whole, err := c.ReadOrder(t.Context(), "acme-in", "8472")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "whole order", []*amendsv1.Order{whole.Order}, []*amendsv1.Order{order})
	same(t, "whole captures", whole.Captures, captures)
	same(t, "whole refunds", whole.Refunds, refunds)
	same(t, "whole disputes", whole.Disputes, disputes)

	settlement, err := c.GetSettlement(t.Context(), "acme-in", "8472")
	if err != nil {
		t.Fatal(err)
	}
	if p := settlement.Payments; len(p) != 2 || !p[0].Settled || p[0].SettledAt != nil || p[1].PaymentID != "pay_8472_b" || !proto.Equal(p[1].SettledAt, at(11, 0, 2)) {
		t.Errorf("settlement %+v", settlement.Payments)
	}

	one, err := c.GetRefund(t.Context(), "acme-in", "rf_2")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "refund", []*amendsv1.Refund{one.Refund}, refunds[1:])

	for name, a := range map[string]struct{ version, raw string }{
		"captures":   {listed.SourceVersion, string(listed.Raw)},
		"refunds":    {listedRefunds.SourceVersion, string(listedRefunds.Raw)},
		"settlement": {settlement.SourceVersion, string(settlement.Raw)},
		"whole":      {whole.SourceVersion, string(whole.Raw)},
	} {
		if a.version == "" || a.version != whole.SourceVersion || !strings.HasPrefix(a.raw, "{") {
			t.Errorf("%s: version %q, raw %q", name, a.version, a.raw)
		}
	}
}

func same[T proto.Message](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if !proto.Equal(got[i], want[i]) {
			t.Errorf("%s[%d]: %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestStatusTables(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"authorized", "captured", "settled", "voided", "failed"} {
		if got := payments.CaptureStatus(s); got.String() != "CAPTURE_STATUS_"+strings.ToUpper(s) {
			t.Errorf("capture %s: %v", s, got)
		}
	}
	for _, s := range []string{"pending", "succeeded", "failed", "canceled", "requires_action"} {
		if got := payments.RefundStatus(s); got.String() != "REFUND_STATUS_"+strings.ToUpper(s) {
			t.Errorf("refund %s: %v", s, got)
		}
	}
	for _, s := range []string{"open", "won", "lost", "closed"} {
		if got := payments.DisputeStatus(s); got.String() != "DISPUTE_STATUS_"+strings.ToUpper(s) {
			t.Errorf("dispute %s: %v", s, got)
		}
	}
	for _, s := range []string{"", "unknown", "Succeeded", "SETTLED", "cancelled", " pending"} {
		if payments.CaptureStatus(s) != amendsv1.CaptureStatus_CAPTURE_STATUS_UNKNOWN ||
			payments.RefundStatus(s) != amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN ||
			payments.DisputeStatus(s) != amendsv1.DisputeStatus_DISPUTE_STATUS_UNKNOWN {
			t.Errorf("%q is taken for a status", s)
		}
	}
}

// reads are all calls of the client, by name.
func reads(t *testing.T, c *payments.Client) map[string]error {
	t.Helper()
	out := map[string]error{}
	_, out["verify owner"] = c.VerifyOwner(t.Context(), "acme-in", "cust_5519", "8472")
	_, out["list captures"] = c.ListCaptures(t.Context(), "acme-in", "8472")
	_, out["list refunds"] = c.ListRefunds(t.Context(), "acme-in", "8472")
	_, out["get settlement"] = c.GetSettlement(t.Context(), "acme-in", "8472")
	_, out["read order"] = c.ReadOrder(t.Context(), "acme-in", "8472")
	_, out["get refund"] = c.GetRefund(t.Context(), "acme-in", "rf_1")
	_, out["list refunds of the tenant"] = c.ListTenantRefunds(t.Context(), "acme-in", time.Time{}, "")
	return out
}

func TestErrorsOfTheSandbox(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	for name, err := range reads(t, client(t, s.URL, sandboxtest.ReadKey)) {
		want := payments.ErrNotFound
		switch name {
		case "verify owner":
			want = payments.ErrUnauthorized // another scope
		case "list refunds of the tenant":
			if err != nil {
				t.Errorf("%s: %v", name, err) // a tenant without refunds has none
			}
			continue
		}
		if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	for name, err := range reads(t, client(t, s.URL, "wrong")) {
		if !errors.Is(err, payments.ErrUnauthorized) {
			t.Errorf("%s with a wrong key: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range reads(t, client(t, s.URL, sandboxtest.ReadKey)) {
		if !errors.Is(err, payments.ErrUnavailable) {
			t.Errorf("%s without a provider: %v", name, err)
		}
	}
}

// An answer that is not what was asked for is no evidence.
func TestUnusableAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"500":          {status(500), payments.ErrUnavailable},
		"503":          {status(503), payments.ErrUnavailable},
		"429":          {status(429), payments.ErrUnavailable},
		"408":          {status(408), payments.ErrUnavailable},
		"400":          {status(400), payments.ErrRejected},
		"204":          {status(204), payments.ErrRejected},
		"redirect":     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, payments.ErrRejected},
		"not JSON":     {text("<html>"), payments.ErrUnavailable},
		"nothing":      {text(""), payments.ErrUnavailable},
		"null":         {text("null"), payments.ErrUnavailable},
		"empty object": {text("{}"), payments.ErrUnavailable},
		"other order": {
			text(`{"order":{"order_id":"1"},"order_id":"1","captures":[],"refunds":[],"disputes":[],"payments":[],"refund":{"refund_id":"rf_9"}}`),
			payments.ErrUnavailable,
		},
		"lists missing":      {text(`{"order":{"order_id":"8472"},"order_id":"8472","refund":{},"refunds":null}`), payments.ErrUnavailable},
		"wrong type":         {text(`{"owner":"yes","order_id":"8472","order":7,"refunds":"none","payments":1,"refund":[]}`), payments.ErrUnavailable},
		"too large":          {text(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`), payments.ErrUnavailable},
		"a list without end": {text(`{"refunds":[],"next":"7"}`), payments.ErrUnavailable},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, `{"order"`)
		}, payments.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(c.answer)
			defer web.Close()
			for call, err := range reads(t, client(t, web.URL, "k")) {
				if !errors.Is(err, c.want) {
					t.Errorf("%s: %v, want %v", call, err, c.want)
				}
			}
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, s) }
}

func TestCallsAreBoundedInTime(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	defer web.Close()
	defer close(stop)
	c, err := payments.New(payments.Config{URL: web.URL, Key: "k", Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ReadOrder(t.Context(), "acme-in", "8472"); !errors.Is(err, payments.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}

func TestNewRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []payments.Config{
		{URL: "http://127.0.0.1:1"},
		{Key: "k"},
		{URL: "127.0.0.1:1", Key: "k"},
		{URL: "ftp://host", Key: "k"},
		{URL: "http://user:secret@host", Key: "k"},
		{URL: "http://host/?x=1", Key: "k"},
	} {
		if _, err := payments.New(c); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.URL, err)
		}
	}
}
