package sandbox_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

func faulty(t *testing.T, texts ...string) *sandboxtest.Sandbox {
	t.Helper()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	setFaults(t, s, texts...)
	return s
}

func get(path string) request {
	return request{method: http.MethodGet, path: path + "?tenant=acme-in", token: sandboxtest.ReadKey}
}

// is fails unless a problem has this status and code, and says which fault it is.
func (r response) is(t *testing.T, status int, code string, kind sandbox.FaultKind) {
	t.Helper()
	if r.status != status || r.code(t) != code || !strings.Contains(r.body, "fault "+string(kind)) {
		t.Errorf("%d %s, want %d %s by %s", r.status, r.body, status, code, kind)
	}
}

func refundsOf(t *testing.T, s *sandboxtest.Sandbox, want int) {
	t.Helper()
	if got := s.Ledger(t).Refunds; len(got) != want {
		t.Errorf("%d refunds, want %d: %+v", len(got), want, got)
	}
}

// B01: the refund exists and its answer is lost, once; the repeat is answered.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	s := faulty(t, "answer_lost,times=1,payment=pay_8472_b")
	other := refund("other", refundOf(t, map[string]any{"payment_id": "pay_8472_a"}))
	if got := send(t, s.URL, other); got.status != http.StatusCreated {
		t.Errorf("another payment: %d %s", got.status, got.body)
	}
	if r, err := trySend(t, s.URL, refund("k", duplicateRefund)); err == nil {
		t.Errorf("the answer was not lost: %d %s", r.status, r.body)
	}
	refundsOf(t, s, 2)
	again := send(t, s.URL, refund("k", duplicateRefund))
	if again.header.Get("Idempotent-Replayed") != "true" || parseRefund(t, again).RefundID != "rf_5522" {
		t.Errorf("repeat: %d %s", again.status, again.body)
	}
	struck(t, s, 1)
	// Nothing is lost of a request that was refused: nothing was done.
	setFaults(t, s, "answer_lost")
	if got := send(t, s.URL, refund("more", duplicateRefund)); got.status != http.StatusUnprocessableEntity {
		t.Errorf("refused: %d %s", got.status, got.body)
	}
	struck(t, s, 0)
	setFaults(t, s, "answer_lost,on=orders.read+refunds.read,order=8472")
	for _, path := range []string{"/v1/orders/8472", "/v1/refunds/rf_5522"} {
		if r, err := trySend(t, s.URL, get(path)); err == nil {
			t.Errorf("%s is answered: %d %s", path, r.status, r.body)
		}
	}
	if got := send(t, s.URL, get("/v1/orders/8472/refunds")); got.status != http.StatusOK {
		t.Errorf("another route: %d %s", got.status, got.body)
	}
}

// B03 at the provider: an error says nothing about whether it was done.
func TestErrorsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	s := faulty(t, "error_before,times=2", "error_after,code=502,times=1,reference=refund:req-8472:pay_8472_b", "error_before,on=reads,code=503,order=8472")
	for range 2 {
		send(t, s.URL, refund("k", duplicateRefund)).is(t, 500, "internal", sandbox.ErrorBefore)
		refundsOf(t, s, 0)
	}
	send(t, s.URL, refund("k", duplicateRefund)).is(t, 502, "internal", sandbox.ErrorAfter)
	refundsOf(t, s, 1)
	if got := send(t, s.URL, refund("k", duplicateRefund)); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("repeat: %d %s", got.status, got.body)
	}
	send(t, s.URL, get("/v1/orders/8472/captures")).is(t, 503, "unavailable", sandbox.ErrorBefore)
	if got := send(t, s.URL, get("/v1/orders/77")); got.status != http.StatusNotFound {
		t.Errorf("another order: %d %s", got.status, got.body)
	}
	struck(t, s, 2, 1, 1)
}

func TestOutages(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	owner := request{method: http.MethodPost, path: "/v1/orders/verify-owner", token: sandboxtest.VerifyOwnerKey, body: `{"tenant":"acme-in","order_id":"8472","customer_id":"cust_5519"}`}
	for fault, down := range map[string]struct{ reads, writes bool }{
		"outage": {true, true}, "outage,on=reads": {true, false}, "outage,on=writes": {false, true}, "outage,tenant=globex": {false, false},
	} {
		setFaults(t, s, fault)
		for what, c := range map[string]struct {
			request
			down bool
		}{
			"owner": {owner, down.reads}, "order": {get("/v1/orders/8472"), down.reads}, "list": {get("/v1/refunds"), down.reads},
			"refund": {refund("k", duplicateRefund), down.writes},
		} {
			got := send(t, s.URL, c.request)
			if c.down {
				got.is(t, 503, "unavailable", sandbox.Outage)
			} else if got.status >= 300 {
				t.Errorf("%s, %s: %d %s", fault, what, got.status, got.body)
			}
		}
	}
	// Who may not ask learns nothing of it, and the switch itself never fails.
	setFaults(t, s, "outage")
	if got := send(t, s.URL, request{method: http.MethodGet, path: "/v1/orders/8472?tenant=acme-in", token: "wrong"}); got.status != http.StatusUnauthorized {
		t.Errorf("a wrong key: %d", got.status)
	}
	if err := s.Admin.ClearFaults(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := send(t, s.URL, get("/v1/orders/8472")); got.status != http.StatusOK {
		t.Errorf("cleared: %d %s", got.status, got.body)
	}
}

// B02: a client that gave up does not stop what it asked for.
func TestDelay(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		s := faulty(t, "delay,for=300ms,times=1,when="+when)
		q := refund("k", duplicateRefund)
		q.patience = 50 * time.Millisecond
		if r, err := trySend(t, s.URL, q); err == nil {
			t.Errorf("%s: %d %s", when, r.status, r.body)
		}
		made := len(s.Ledger(t).Refunds) == 1
		if made != (when == "after") {
			t.Errorf("%s: made meanwhile: %t", when, made)
		}
		eventually(t, func() bool { return len(s.Ledger(t).Refunds) == 1 })
		if got := send(t, s.URL, refund("k", duplicateRefund)); got.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: repeat: %d %s", when, got.status, got.body)
		}
		struck(t, s, 1)
	}
}

// A request that is held when the sandbox ends is not done.
func TestDelayEndsWithTheSandbox(t *testing.T) {
	t.Parallel()
	s := faulty(t, "delay,for=10m", "fails_later,for=10m")
	done := make(chan error, 1)
	go func() {
		_, err := trySend(t, s.URL, refund("k", duplicateRefund))
		done <- err
	}()
	eventually(t, func() bool { return s.Faults()[0].Struck == 1 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("it was answered")
	}
	again := sandboxtest.Start(t, func(c *sandbox.Config) { c.File = s.Config.File })
	refundsOf(t, again, 0)
	if all := again.Faults(); len(all) != 0 {
		t.Errorf("faults survive: %v", all)
	}
}

// B04: a key is forgotten before its window is over, and then makes another
// refund; those that are young enough are known.
func TestKeysForgotten(t *testing.T) {
	t.Parallel()
	s := faulty(t, "keys_forgotten,for=1h,times=1")
	half := refundOf(t, map[string]any{"amount_minor": 100})
	first := parseRefund(t, send(t, s.URL, refund("k", half)))
	s.Clock.Advance(time.Hour - time.Second)
	if got := send(t, s.URL, refund("k", half)); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("young: %d %s", got.status, got.body)
	}
	struck(t, s, 0)
	s.Clock.Advance(time.Second)
	second := parseRefund(t, send(t, s.URL, refund("k", half)))
	struck(t, s, 1)
	if second.RefundID == first.RefundID {
		t.Error("the key is known")
	}
	if got := parseRefund(t, send(t, s.URL, refund("k", half))); got.RefundID != second.RefundID {
		t.Errorf("the key is bound to %s", got.RefundID)
	}
	setFaults(t, s, "keys_forgotten") // now, every one
	if got := parseRefund(t, send(t, s.URL, refund("k", half))); got.RefundID == second.RefundID {
		t.Error("the key is known")
	}
	refundsOf(t, s, 3)
}

// A provider without idempotency: every request is a new one, also after a
// restart; the capture's remainder is all that protects the customer.
func TestNoIdempotency(t *testing.T) {
	t.Parallel()
	half := refundOf(t, map[string]any{"amount_minor": 100000})
	for name, s := range map[string]*sandboxtest.Sandbox{
		"fault":         faulty(t, "no_idempotency"),
		"configuration": sandboxtest.Start(t, func(c *sandbox.Config) { c.NoKeys = true }),
	} {
		s.Load(t, sandboxtest.Duplicate())
		for range 2 {
			if got := send(t, s.URL, refund("k", half)); got.status != http.StatusCreated || got.header.Get("Idempotent-Replayed") != "" {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		if got := send(t, s.URL, refund("k", half)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: over-refund: %d %s", name, got.status, got.body)
		}
		refundsOf(t, s, 2)
		if got := send(t, s.URL, request{method: http.MethodPost, path: "/v1/refunds", token: sandboxtest.RefundWriteKey, body: half}); got.status != http.StatusBadRequest {
			t.Errorf("%s: without a key: %d", name, got.status)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := sandboxtest.Start(t, func(c *sandbox.Config) { c.File = s.Config.File })
		refundsOf(t, again, 2)
		if got := send(t, again.URL, refund("k", half)); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: a key that was not kept is known after a restart: %d %s", name, got.status, got.body)
		}
	}
}

// B12: a refund is pending when it is made and fails later.
func TestFailsLater(t *testing.T) {
	t.Parallel()
	h, to, clock := newHooks(t)
	s := sandboxtest.Start(t, tellsTo(to, clock))
	s.Load(t, sandboxtest.Duplicate())
	setFaults(t, s, "fails_later,for=20ms,payment=pay_8472_b", "fails_later,status=requires_action,for=1ms", "webhook_before_answer")
	b := parseRefund(t, send(t, s.URL, refund("b", duplicateRefund)))
	a := parseRefund(t, send(t, s.URL, refund("a", refundOf(t, map[string]any{"payment_id": "pay_8472_a"}))))
	if a.Status != "pending" || b.Status != "pending" {
		t.Errorf("made as %s and %s", a.Status, b.Status)
	}
	status := func(id string) string { return parseRefund(t, send(t, s.URL, get("/v1/refunds/"+id))).Status }
	eventually(t, func() bool { return status(b.RefundID) == "failed" && status(a.RefundID) == "requires_action" })
	ours := " refund:req-8472:pay_8472_b"
	h.await(t, "refund.created "+a.RefundID+ours, "refund.updated "+a.RefundID+ours, "refund.created "+b.RefundID+ours, "refund.failed "+b.RefundID+ours)
	struck(t, s, 1, 1, 4)
	if got := send(t, s.URL, refund("b", duplicateRefund)); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat fails nothing: %d %s", got.status, got.body)
	}
	struck(t, s, 1, 1, 4)
}

// What is shown is not what is: a record contradicts itself, or its status is
// one nobody knows. What is paid back goes by the record itself.
func TestDistortedReads(t *testing.T) {
	t.Parallel()
	s := faulty(t)
	s.Load(t, sandbox.Ledger{Disputes: []sandbox.Dispute{{DisputeID: "dp_1", Tenant: "acme-in", PaymentID: "pay_8472_a", Status: "won"}}})
	id := parseRefund(t, send(t, s.URL, refund("k", duplicateRefund))).RefundID
	type shown struct {
		Captures []sandbox.Capture
		Refunds  []sandbox.Refund
		Refund   sandbox.Refund
		Disputes []sandbox.Dispute
		Payments []struct {
			Settled   bool
			SettledAt *time.Time `json:"settled_at"`
		}
	}
	read := func(path string) (v shown) {
		t.Helper()
		got := send(t, s.URL, get(path))
		if err := json.Unmarshal([]byte(got.body), &v); err != nil || got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		return v
	}
	const order, captures, refunds, settlement, list = "/v1/orders/8472", "/v1/orders/8472/captures", "/v1/orders/8472/refunds", "/v1/orders/8472/settlement", "/v1/refunds"
	plain := send(t, s.URL, get(order)).body

	setFaults(t, s, "contradictory,payment=pay_8472_b")
	for _, path := range []string{order, captures} {
		c := read(path).Captures
		if !c[0].Captured || c[1].Captured || !c[1].Settled || c[1].Status != "settled" || c[1].AmountMinor != 200000 {
			t.Errorf("%s: %+v", path, c)
		}
	}
	if p := read(settlement).Payments; !p[0].Settled || p[1].Settled || p[1].SettledAt == nil {
		t.Errorf("settlement %+v", p)
	}
	read(refunds)
	read(list)
	struck(t, s, 3)

	setFaults(t, s, "unknown_enum,order=8472,times=3")
	v := read(order)
	if v.Captures[0].Status != "under_observation" || v.Refunds[0].Status != "under_observation" || v.Disputes[0].Status != "under_observation" {
		t.Errorf("%+v", v)
	}
	if r := read(list).Refunds[0]; r.Status != "under_observation" || r.RefundID != id {
		t.Errorf("list: %+v", r)
	}
	if r := read("/v1/refunds/" + id).Refund; r.Status != "under_observation" {
		t.Errorf("refund: %+v", r)
	}
	if got := send(t, s.URL, get(order)).body; got != plain {
		t.Errorf("it struck more often than three times: %s", got)
	}

	setFaults(t, s, "unknown_enum,record=refund,status=lost_in_mail,reference=refund:req-8472:pay_8472_b", "unknown_enum,record=capture,order=77", "unknown_enum,record=refund,on=refunds.create")
	v = read(order)
	if v.Captures[0].Status != "settled" || v.Refunds[0].Status != "lost_in_mail" {
		t.Errorf("%+v", v)
	}
	if r := parseRefund(t, send(t, s.URL, refund("k", duplicateRefund))); r.Status != "under_observation" {
		t.Errorf("answer %+v", r)
	}
	struck(t, s, 1, 0, 1)
	if l := s.Ledger(t); l.Refunds[0].Status != "pending" || l.Captures[1].Status != "settled" {
		t.Errorf("the ledger itself is changed: %+v", l)
	}
}

// The provider's clock is off: what it records and what it tells carry its own
// time, and keys are remembered by the true one.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	s := faulty(t, "clock_skew,for=48h")
	at := s.Clock.Now()
	half := refundOf(t, map[string]any{"amount_minor": 100})
	r := parseRefund(t, send(t, s.URL, refund("k", half)))
	if !r.CreatedAt.Equal(at.Add(48 * time.Hour)) {
		t.Errorf("created at %s", r.CreatedAt)
	}
	setFaults(t, s, "clock_skew,for=-90s,on=records,order=8472", "clock_skew,for=1h,order=77")
	s.Clock.Advance(time.Minute)
	if got := send(t, s.URL, refund("k", half)); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the key of a refund that is yet to be made: %d %s", got.status, got.body)
	}
	if err := s.Admin.SetCaptureStatus(t.Context(), "acme-in", "pay_8472_a", "settled"); err != nil {
		t.Fatal(err)
	}
	if c := s.Ledger(t).Captures[0]; !c.SettledAt.Equal(at.Add(-30 * time.Second)) {
		t.Errorf("settled at %s", c.SettledAt)
	}
	struck(t, s, 1, 0)
	if r := parseRefund(t, send(t, s.URL, refund("k2", half))); !r.CreatedAt.Equal(at.Add(-30 * time.Second)) {
		t.Errorf("created at %s", r.CreatedAt)
	}
}

// A webhook of a skewed provider bears its time, in its body and its signature.
func TestClockSkewOfWebhooks(t *testing.T) {
	t.Parallel()
	_, to, clock := newHooks(t)
	stamps := make(chan string, 8)
	web := stampServer(t, stamps)
	to.URL = web
	s := sandboxtest.Start(t, tellsTo(to, clock))
	s.Load(t, sandboxtest.Duplicate())
	setFaults(t, s, "clock_skew,for=-10m,on=webhooks,times=1")
	r := parseRefund(t, send(t, s.URL, refund("k", duplicateRefund)))
	want := clock.Now().Add(-10 * time.Minute)
	select {
	case got := <-stamps:
		if got != stampOf(want, want) || !r.CreatedAt.Equal(clock.Now()) {
			t.Errorf("%s, want %s; created at %s", got, stampOf(want, want), r.CreatedAt)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no webhook")
	}
}
