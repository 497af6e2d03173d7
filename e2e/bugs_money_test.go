package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// asks posts about an order and waits until its case proposes a refund.
func (w *world) asks(order, message string) (id string, waiting deskapi.View) {
	w.t.Helper()
	id = "req-" + order
	if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: id, CaseID: id, Message: message}); err != nil {
		w.t.Fatal(err)
	}
	return id, w.until(id, 0, in("AWAITING_APPROVAL"))
}

// refundCall asks the provider for a refund as whoever holds token would.
func (w *world) refundCall(token, key string, body []byte) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.SandboxURL+"/v1/refunds", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// refundBody is a well-formed request for a whole payment of w.orders.
func refundBody(order, payment, reference string, minor int64) []byte {
	body, _ := json.Marshal(map[string]any{
		"tenant": allinone.Tenant, "order_id": order, "payment_id": payment, "amount_minor": minor, "currency": "INR", "reference": reference,
	})
	return body
}

func (w *world) secret(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Dir(), "secrets", name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// intents are those of an order's effect entry, the newest of it.
func (w *world) intents(order string) (out []*amendsv1.EffectIntent) {
	w.t.Helper()
	w.read(roles.StreamEffects, func(m jetstream.Msg) {
		var e amendsv1.EffectEntry
		if !strings.HasSuffix(m.Subject(), "."+order) {
			return
		}
		if err := proto.Unmarshal(m.Data(), &e); err != nil {
			w.t.Fatal(err)
		}
		out = e.GetIntents()
	})
	return out
}

// Bug B03: of all keys of a running desk one can ask for a refund, the
// executor's, and only with an idempotency key. No agent has one, in its
// configuration or anywhere: what it can ask is refused by the provider.
func TestNoAgentReachesTheRefundCallB03AUTH1(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(1, true)
	body := refundBody("8472", "pay_8472_b", "refund:req-8472:pay_8472_b", 200000)
	files, err := w.WriteConfigs(t.TempDir(), func(roles.Service) string { return "127.0.0.1:0" })
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(w.Dir(), "secrets", "*"))
	if err != nil || len(found) < 8 {
		t.Fatalf("secrets %v, %v", found, err)
	}
	for _, path := range found {
		name := filepath.Base(path)
		var holders []roles.Service
		for s, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), path) {
				holders = append(holders, s)
			}
		}
		if name == "payments-refund-write" {
			if !slices.Equal(holders, []roles.Service{roles.RefundExecutor}) {
				t.Errorf("the refund-write key is given to %v", holders)
			}
			continue
		}
		if status := w.refundCall(w.secret(name), "k-"+name, body); status != http.StatusForbidden && status != http.StatusUnauthorized {
			t.Errorf("%s, held by %v: the refund call answers %d", name, holders, status)
		}
	}
	if status := w.refundCall("", "k", body); status != http.StatusUnauthorized {
		t.Errorf("without a credential the refund call answers %d", status)
	}
	if status := w.refundCall(w.secret("payments-refund-write"), "", body); status != http.StatusBadRequest {
		t.Errorf("without an idempotency key the refund call answers %d", status)
	}
	if n := len(w.refunds()); n != 0 {
		t.Errorf("MONEY-1: %d refunds", n)
	}
}

// Bug B05: the key of a case's refund is used up at the provider by something
// else. The conflict is an answer of its own: the case goes to a person, and
// no other key is made.
func TestUsedKeyGoesToAPersonB05(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(2, true)
	id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
	// On another order, where the case's own reading cannot see it.
	key := approval.Key(id, "pay_8472_b")
	if status := w.refundCall(w.secret("payments-refund-write"), key, refundBody("8473", "pay_8473_b", "elsewhere", 100)); status != http.StatusCreated {
		t.Fatalf("the key is not used: %d", status)
	}
	if err := w.approve(id, waiting.Version); err != nil {
		t.Fatal(err)
	}
	w.until(id, waiting.Version, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" && len(v.Replies) == 1 })
	if got := w.queued(); got.CaseID != id {
		t.Errorf("the queue holds %+v", got)
	}
	rec := w.record(0, 0)
	if got := rec.GetEffect().GetRefunds(); len(got) != 1 || got[0].GetOutcome().GetReason() != "idempotency_key_reused" || got[0].GetOutcome().GetRefundId() != "" {
		t.Errorf("the effect is %v", got)
	}
	if got := w.intents("8472"); len(got) != 1 || got[0].GetIdempotencyKey() != key {
		t.Errorf("intents %v", got)
	}
	if made := w.refunds(); len(made) != 1 || made["pay_8473_b"].AmountMinor != 100 {
		t.Errorf("MONEY-1: refunds %+v", made)
	}
	w.noDeadLetters()
}

// Bugs B13 and B14: a refund that is pending at the bank is neither failed nor
// done. The case says pending to the customer and to staff, and asks once.
func TestPendingRefundIsNeitherFailedNorDoneB13B14(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(1, true)
	id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
	if err := w.approve(id, waiting.Version); err != nil {
		t.Fatal(err)
	}
	v := w.until(id, waiting.Version, closed)
	if v.State != "VERIFIED_CLOSED" || len(v.Replies) != 1 {
		t.Fatalf("ended %s with %+v", v.State, v.Replies)
	}
	text := strings.ToLower(v.Replies[0].Text)
	if !strings.Contains(text, "pending at the bank") {
		t.Errorf("B13: the reply does not say pending: %s", text)
	}
	for _, done := range []string{"completed", "refunded", "credited", "arrived", "was issued", "failed", "did not go through"} {
		if strings.Contains(text, done) {
			t.Errorf("B14: the reply says %q of a pending refund: %s", done, text)
		}
	}
	// Staff see that it is in progress and by which call.
	rec := w.record(0, v.Version)
	got := rec.GetEffect().GetRefunds()
	if len(got) != 1 || got[0].GetOutcome().GetProviderStatus() != amendsv1.RefundStatus_REFUND_STATUS_PENDING ||
		got[0].GetReadBack().GetStatus() != amendsv1.RefundStatus_REFUND_STATUS_PENDING {
		t.Errorf("staff see %v", got)
	}
	if page := w.page(id); !strings.Contains(page, "pending") {
		t.Error("B13: the approver's page does not say that the refund is in progress")
	}
	rows := w.rows(id)
	if count(rows, "effect.acknowledged") != 1 || count(rows, "effect.overdue") != 0 || count(rows, "effect.none") != 0 {
		t.Errorf("rows %q", rows)
	}
	if in := w.intents("8472"); len(in) != 1 || in[0].GetCalls() != 1 {
		t.Errorf("B13: the call was repeated: %v", in)
	}
	if n := len(w.refunds()); n != 1 {
		t.Errorf("MONEY-1: %d refunds", n)
	}
	w.noDeadLetters()
}

// Bug B16: a currency without minor digits means the same at every place: what
// the approver signs, what the provider is asked for, what the customer reads.
func TestZeroDecimalCurrenciesB16(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{
		NoSync: true, ApproverLimits: []approval.Limit{{Currency: "JPY", Minor: 1_000_000}, {Currency: "KRW", Minor: 10_000_000}},
	})
	for _, c := range []struct {
		order, currency string
		minor           int64
		approved, said  string
	}{
		{"9027", "JPY", 50000, "JPY 50000 ", "¥50,000 "},
		{"9028", "KRW", 1234500, "KRW 1234500 ", "₩1,234,500 "},
	} {
		b := newBook(c.order, c.minor, c.currency, 2, c.minor, c.minor)
		if err := w.Provider.Load(w.ctx, b.Ledger); err != nil {
			t.Fatal(err)
		}
		id, waiting := w.asks(c.order, "Order "+c.order+" was charged twice, please refund one.")
		shown, action, err := w.staff.Action(w.ctx, allinone.Tenant, id, waiting.Version)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(shown.ActionText, c.approved) || action.GetRefunds()[0].GetAmount().GetMinor() != c.minor {
			t.Errorf("%s: the approver signs %s", c.currency, shown.ActionText)
		}
		if page := w.page(id); !strings.Contains(page, strings.TrimSpace(c.said)) {
			t.Errorf("%s: the approver's page does not show %s", c.currency, c.said)
		}
		if err := w.approve(id, waiting.Version); err != nil {
			t.Fatal(err)
		}
		v := w.until(id, waiting.Version, closed)
		if v.State != "VERIFIED_CLOSED" || len(v.Replies) != 1 || !strings.Contains(v.Replies[0].Text, c.said) {
			t.Errorf("%s: the case ended %s with %+v", c.currency, v.State, v.Replies)
		}
		var body struct {
			AmountMinor int64 `json:"amount_minor"`
			Currency    string
		}
		intents := w.intents(c.order)
		if len(intents) != 1 || json.Unmarshal(intents[0].GetBody(), &body) != nil || body.AmountMinor != c.minor || body.Currency != c.currency {
			t.Errorf("%s: the provider was asked for %s", c.currency, intents)
		}
		if r := w.refunds()[b.payment(1)]; r.AmountMinor != c.minor || r.Currency != c.currency {
			t.Errorf("%s: the refund is %+v", c.currency, r)
		}
	}
	w.noDeadLetters()
}

// Bug B18: while the case waits for its approval, somebody refunds the payment
// at the provider's dashboard, and no event says so. The executor reads the
// order again and stops; a person sees why (MONEY-1, MONEY-4).
func TestDashboardRefundStopsTheExecutionB18(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(1, true)
	w.faults(sandbox.Fault{Kind: sandbox.WebhookLost})
	id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
	err := w.Provider.Load(w.ctx, sandbox.Ledger{Refunds: []sandbox.Refund{{
		RefundID: "rf_dash", Tenant: allinone.Tenant, OrderID: "8472", PaymentID: "pay_8472_b", AmountMinor: 200000, Currency: "INR", Status: "succeeded", CreatedAt: time.Now(),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.approve(id, waiting.Version); err != nil {
		t.Fatal(err)
	}
	w.until(id, waiting.Version, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" && len(v.Replies) == 1 })
	if made := w.refunds(); len(made) != 1 || made["pay_8472_b"].RefundID != "rf_dash" {
		t.Errorf("MONEY-1: refunds %+v", made)
	}
	if in := w.intents("8472"); len(in) != 0 {
		t.Errorf("an intent was written: %v", in)
	}
	if rows := w.rows(id); count(rows, "effect.refused") != 1 {
		t.Errorf("rows %q", rows)
	}
	w.noDeadLetters()
}

// Bug B17: the check that every test of this package ends with finds what it
// is for.
func TestOverRefundedLedgerIsFoundB17(t *testing.T) {
	t.Parallel()
	sound := newBook("9001", 200000, "INR", 2, 200000, 200000).refunded(1, 200000, "pending").Ledger
	failed := newBook("9001", 200000, "INR", 2, 200000).refunded(0, 200001, "failed").Ledger
	for name, c := range map[string]struct {
		ledger sandbox.Ledger
		want   int
	}{
		"sound":              {sound, 0},
		"failed":             {failed, 0},
		"more than captured": {newBook("9001", 200000, "INR", 2, 200000, 200000).refunded(1, 200001, "pending").Ledger, 1},
		"a hold":             {newBook("9001", 200000, "INR", 2, 200000, 200000).hold(1).refunded(1, 1, "succeeded").Ledger, 1},
		"the order":          {newBook("9001", 200000, "INR", 2, 200000).refunded(0, 200001, "unheard_of").Ledger, 2},
	} {
		if got := overRefunded(c.ledger); len(got) != c.want {
			t.Errorf("%s: %q, want %d", name, got, c.want)
		}
	}
}
