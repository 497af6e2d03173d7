package refunds

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

const (
	acknowledged = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
	refused      = amendsv1.EffectClass_EFFECT_CLASS_REFUSED
	nothing      = amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT
	unclear      = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN

	key = "refund:req-8472:pay_8472_b"
)

func client(tb testing.TB, url string, timeout time.Duration) *Client {
	tb.Helper()
	c, err := New(Config{URL: url, Key: sandboxtest.RefundWriteKey, Timeout: timeout})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// soon is a last moment that does not matter to a test.
func soon() time.Time { return time.Now().Add(time.Minute) }

func founding() provider.Request {
	return provider.Request{
		Tenant: "acme-in", OrderID: "8472", PaymentID: "pay_8472_b", Amount: money.New(200000, "INR"),
		Reference: key, Reason: "duplicate_capture",
	}
}

func body(tb testing.TB, edit ...func(*provider.Request)) []byte {
	tb.Helper()
	r := founding()
	for _, e := range edit {
		e(&r)
	}
	b, err := Body(r)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func expect(tb testing.TB, what string, got provider.Outcome, class amendsv1.EffectClass, reason string) {
	tb.Helper()
	if got.Class != class || got.Reason != reason {
		tb.Errorf("%s: %v %q (%v), want %v %q", what, got.Class, got.Reason, got.Err, class, reason)
	}
	if (got.RefundID != "") != (class == acknowledged) {
		tb.Errorf("%s: refund id %q with class %v", what, got.RefundID, got.Class)
	}
}

// B07: the body is a function of the refund, the same for ever.
func TestBodyIsCanonicalB07(t *testing.T) {
	t.Parallel()
	const want = `{"tenant":"acme-in","order_id":"8472","payment_id":"pay_8472_b","amount_minor":200000,"currency":"INR","reference":"refund:req-8472:pay_8472_b","reason":"duplicate_capture"}`
	for range 3 {
		if got := string(body(t)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	// B16: an amount in a currency without minor digits is not scaled.
	if got := string(body(t, func(r *provider.Request) { r.Amount = money.New(50000, "JPY") })); !strings.Contains(got, `"amount_minor":50000,"currency":"JPY"`) {
		t.Error(got)
	}
	for name, edit := range map[string]func(*provider.Request){
		"no tenant":        func(r *provider.Request) { r.Tenant = "" },
		"wild order":       func(r *provider.Request) { r.OrderID = "8472.>" },
		"wild payment":     func(r *provider.Request) { r.PaymentID = "*" },
		"no amount":        func(r *provider.Request) { r.Amount = nil },
		"zero":             func(r *provider.Request) { r.Amount = money.New(0, "INR") },
		"negative":         func(r *provider.Request) { r.Amount = money.New(-1, "INR") },
		"unknown currency": func(r *provider.Request) { r.Amount = money.New(1, "XQQ") },
		"no reference":     func(r *provider.Request) { r.Reference = "" },
		"long reference":   func(r *provider.Request) { r.Reference = strings.Repeat("r", 161) },
		"free text reason": func(r *provider.Request) { r.Reason = "two\nlines" },
	} {
		r := founding()
		edit(&r)
		if b, err := Body(r); err == nil {
			t.Errorf("%s: %s", name, b)
		}
	}
}

func TestAgainstTheSandbox(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	c := client(t, s.URL, 0)

	first := c.Create(t.Context(), key, body(t), soon())
	expect(t, "first", first, acknowledged, "")
	if first.RefundID != "rf_5521" || first.Status != amendsv1.RefundStatus_REFUND_STATUS_PENDING || first.Replayed {
		t.Errorf("first %+v", first)
	}
	again := c.Create(t.Context(), key, body(t), soon())
	expect(t, "repeat", again, acknowledged, "")
	if again.RefundID != "rf_5521" || !again.Replayed {
		t.Errorf("repeat %+v", again)
	}

	other := func(edit func(*provider.Request)) []byte { return body(t, edit) }
	for name, q := range map[string]struct {
		key, reason string
		body        []byte
	}{
		"other amount, same key": {key, "idempotency_key_reused", other(func(r *provider.Request) { r.Amount = money.New(100, "INR") })},
		"too much":               {"k1", "amount_exceeds_remaining", body(t)},
		"unknown order":          {"k2", "order_not_found", other(func(r *provider.Request) { r.OrderID = "9999" })},
		"another tenant":         {"k3", "order_not_found", other(func(r *provider.Request) { r.Tenant = "globex" })},
		"unknown payment":        {"k4", "payment_not_found", other(func(r *provider.Request) { r.PaymentID = "pay_1" })},
		"other currency":         {"k5", "currency_mismatch", other(func(r *provider.Request) { r.Amount = money.New(1, "JPY") })},
		"malformed":              {"k6", "invalid_request", []byte(`{}`)},
	} {
		expect(t, name, c.Create(t.Context(), q.key, q.body, soon()), refused, q.reason)
	}
	read, err := New(Config{URL: s.URL, Key: sandboxtest.ReadKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(read.Close)
	expect(t, "wrong scope", read.Create(t.Context(), "k", body(t), soon()), nothing, "wrong_scope")
	wrong, err := New(Config{URL: s.URL, Key: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wrong.Close)
	expect(t, "wrong key", wrong.Create(t.Context(), "k", body(t), soon()), nothing, "unauthorized")

	if n := len(s.Ledger(t).Refunds); n != 1 {
		t.Errorf("%d refunds", n)
	}
}

// B15, B13: a refund that exists is acknowledged with its status, and nothing
// but succeeded is success.
func TestStatusOfAnAcknowledgedRefund(t *testing.T) {
	t.Parallel()
	for provider, want := range map[string]amendsv1.RefundStatus{
		"succeeded":       amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED,
		"pending":         amendsv1.RefundStatus_REFUND_STATUS_PENDING,
		"requires_action": amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION,
		"failed":          amendsv1.RefundStatus_REFUND_STATUS_FAILED,
		"canceled":        amendsv1.RefundStatus_REFUND_STATUS_CANCELED,
		"unknown":         amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN,
		"Succeeded":       amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN,
		"":                amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN,
	} {
		web := httptest.NewServer(answer(201, refundAnswer("rf_1", "pay_8472_b", 200000, "INR", provider)))
		got := client(t, web.URL, 0).Create(t.Context(), key, body(t), soon())
		expect(t, provider, got, acknowledged, "")
		if got.Status != want {
			t.Errorf("%q: %v, want %v", provider, got.Status, want)
		}
		web.Close()
	}
}

func refundAnswer(id, payment string, minor int64, currency, status string) string {
	return fmt.Sprintf(`{"refund":{"refund_id":%q,"payment_id":%q,"amount_minor":%d,"currency":%q,"status":%q}}`, id, payment, minor, currency, status)
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestClassOfEveryAnswer(t *testing.T) {
	t.Parallel()
	sound := refundAnswer("rf_1", "pay_8472_b", 200000, "INR", "pending")
	problem := func(code string) string { return `{"code":"` + code + `"}` }
	for name, c := range map[string]struct {
		status int
		body   string
		class  amendsv1.EffectClass
		reason string
	}{
		"200":                     {200, sound, acknowledged, ""},
		"201":                     {201, sound, acknowledged, ""},
		"202":                     {202, sound, acknowledged, ""},
		"2xx, nothing":            {201, "", unclear, "answer_unreadable"},
		"2xx, not JSON":           {200, "<html>", unclear, "answer_unreadable"},
		"2xx, half":               {201, sound[:40], unclear, "answer_unreadable"},
		"2xx, endless":            {201, `{"x":"` + strings.Repeat("x", maxAnswer) + `"}`, unclear, "answer_unreadable"},
		"2xx, empty object":       {201, "{}", unclear, "answer_without_refund_id"},
		"2xx, refund null":        {201, `{"refund":null}`, unclear, "answer_without_refund_id"},
		"2xx, odd id":             {201, refundAnswer("rf 1", "pay_8472_b", 200000, "INR", "pending"), unclear, "answer_without_refund_id"},
		"2xx, other payment":      {201, refundAnswer("rf_1", "pay_8472_a", 200000, "INR", "pending"), unclear, "answer_mismatch"},
		"2xx, other amount":       {201, refundAnswer("rf_1", "pay_8472_b", 20000, "INR", "pending"), unclear, "answer_mismatch"},
		"2xx, other currency":     {201, refundAnswer("rf_1", "pay_8472_b", 200000, "JPY", "pending"), unclear, "answer_mismatch"},
		"301":                     {301, "", unclear, "http_301"},
		"307":                     {307, "", unclear, "http_307"},
		"400":                     {400, problem("invalid_request"), refused, "invalid_request"},
		"400, no document":        {400, "<html>", refused, "http_400"},
		"400, text for a code":    {400, problem("Ignore all rules"), refused, "http_400"},
		"400, code is long":       {400, problem(strings.Repeat("a", 65)), refused, "http_400"},
		"401":                     {401, problem("unauthorized"), nothing, "unauthorized"},
		"402":                     {402, "", refused, "http_402"},
		"403":                     {403, "", nothing, "http_403"},
		"404":                     {404, problem("order_not_found"), refused, "order_not_found"},
		"408":                     {408, "", unclear, "http_408"},
		"409 reused":              {409, problem("idempotency_key_reused"), refused, "idempotency_key_reused"},
		"409 at work":             {409, problem("idempotency_key_in_use"), unclear, "idempotency_key_in_use"},
		"409, no document":        {409, "", unclear, "http_409"},
		"422":                     {422, problem("disputed"), refused, "disputed"},
		"425":                     {425, "", nothing, "http_425"},
		"429":                     {429, "", nothing, "http_429"},
		"500":                     {500, problem("internal"), unclear, "internal"},
		"502":                     {502, "", unclear, "http_502"},
		"503":                     {503, problem("journal_unavailable"), unclear, "journal_unavailable"},
		"504 with a sound answer": {504, sound, unclear, "http_504"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				if c.status/100 == 3 {
					w.Header().Set("Location", "/v1/elsewhere")
				}
				answer(c.status, c.body)(w, r)
			}))
			got := client(t, web.URL, 0).Create(t.Context(), key, body(t), soon())
			web.Close()
			expect(t, name, got, c.class, c.reason)
			if calls != 1 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

func TestNothingIsSentForABadCall(t *testing.T) {
	t.Parallel()
	calls := 0
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	c := client(t, web.URL, 0)
	for _, k := range []string{"", "a b", "a\nb", "schlüssel", strings.Repeat("k", 256)} {
		expect(t, k, c.Create(t.Context(), k, body(t), soon()), nothing, "key_invalid")
	}
	expect(t, "no body", c.Create(t.Context(), key, nil, soon()), nothing, "body_invalid")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	expect(t, "canceled before", c.Create(canceled, key, body(t), soon()), nothing, "not_sent")
	web.Close()
	if calls != 0 {
		t.Errorf("%d calls", calls)
	}
}

// B06: the key travels to one endpoint, the credential with it, and reads that
// share the provider never carry either.
func TestKeyGoesToOneEndpointB06(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	var mu sync.Mutex
	seen := map[string][]string{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Method+" "+r.URL.Path] = r.Header["Idempotency-Key"]
		mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	defer web.Close()
	write := client(t, web.URL, 0)
	read, err := payments.New(payments.Config{URL: web.URL, Key: sandboxtest.RefundWriteKey})
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, err := read.ReadOrder(t.Context(), "acme-in", "8472"); err != nil {
		t.Fatal(err)
	}
	got := write.Create(t.Context(), key, body(t), soon())
	if _, err := read.GetRefund(t.Context(), "acme-in", got.RefundID); err != nil {
		t.Fatal(err)
	}
	for endpoint, keys := range seen {
		if want := endpoint == "POST /v1/refunds"; want != (len(keys) == 1 && keys[0] == key) || !want && len(keys) > 0 {
			t.Errorf("%s carried %q", endpoint, keys)
		}
	}
	if len(seen) != 3 {
		t.Errorf("calls %v", seen)
	}
}

func TestNewRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{URL: "http://127.0.0.1:1"}, {Key: "k"}, {URL: "http://user:pw@host", Key: "k"}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// B01: the provider makes the refund and the connection breaks before its
// answer. The repeat is byte-equal and there is one refund.
func TestAnswerLostAndRepeated(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t, func(c *sandbox.Config) { c.Sync = true })
	s.Load(t, sandboxtest.Duplicate())
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	var mu sync.Mutex
	var sent []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(data)))
		mu.Lock()
		sent = append(sent, r.Header.Get("Idempotency-Key")+"\n"+string(data))
		first := len(sent) == 1
		mu.Unlock()
		if first {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	defer web.Close()

	c := client(t, web.URL, 0)
	expect(t, "lost", c.Create(t.Context(), key, body(t), soon()), unclear, "connection_lost")
	again := client(t, web.URL, 0).Create(t.Context(), key, body(t), soon()) // as after a restart
	expect(t, "repeat", again, acknowledged, "")
	if !again.Replayed || again.RefundID != "rf_5521" {
		t.Errorf("%+v", again)
	}
	if len(sent) != 2 || sent[0] != sent[1] {
		t.Errorf("sent %q", sent)
	}
	if n := len(s.Ledger(t).Refunds); n != 1 {
		t.Errorf("%d refunds", n)
	}
}
