package sandbox_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	"github.com/amends-dev/amends/internal/webhook"
)

// hooks is a receiver of webhooks.
type hooks struct {
	*httptest.Server
	mu   sync.Mutex
	ids  []string
	told []string // kind, object and reference, in the order of arrival
	// refuse is how many more are answered 503.
	refuse int
}

func newHooks(t *testing.T) (*hooks, sandbox.Events, *sandboxtest.Clock) {
	t.Helper()
	secret := webhook.FormatSecret(bytes.Repeat([]byte{5}, 32))
	keys, err := webhook.ParseSecrets(secret)
	if err != nil {
		t.Fatal(err)
	}
	h, clock := new(hooks), sandboxtest.NewClock(time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC))
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		id, err := keys.Verify(r.Header, body, clock.Now())
		if err != nil {
			t.Errorf("the webhook does not verify: %v", err)
		}
		var e struct {
			Type      string
			Timestamp time.Time
			Data      map[string]string
		}
		if err := json.Unmarshal(body, &e); err != nil || e.Data["tenant"] != "acme-in" || e.Data["order_id"] != "8472" || e.Timestamp.IsZero() {
			t.Errorf("the webhook is %s: %v", body, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.refuse > 0 {
			h.refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.ids = append(h.ids, id)
		h.told = append(h.told, strings.TrimSpace(e.Type+" "+e.Data["object_id"]+" "+e.Data["reference"]))
	}))
	t.Cleanup(h.Close)
	return h, sandbox.Events{URL: h.URL, Secret: secret}, clock
}

func (h *hooks) all() (told, ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.told), slices.Clone(h.ids)
}

func (h *hooks) await(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		told, _ := h.all()
		slices.Sort(told)
		if slices.Equal(told, want) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("told %q, want %q", told, want)
		}
	}
}

func tellsTo(e sandbox.Events, clock *sandboxtest.Clock) func(*sandbox.Config) {
	return func(c *sandbox.Config) { c.Events, c.Now = e, clock.Now }
}

// Every change of an order is told once, signed; what is loaded anew, and what
// stays as it is, is not.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	h, to, clock := newHooks(t)
	s := sandboxtest.Start(t, tellsTo(to, clock))
	s.Load(t, sandboxtest.Hold())
	s.Load(t, sandboxtest.Hold())
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Admin.SetCaptureStatus(ctx, "acme-in", "pay_8472_b", "expired"))
	must(s.Admin.SetCaptureStatus(ctx, "acme-in", "pay_8472_b", "captured"))
	must(s.Admin.SetCaptureStatus(ctx, "acme-in", "pay_8472_b", "settled"))
	id := parseRefund(t, send(t, s.URL, refund("k", duplicateRefund))).RefundID
	send(t, s.URL, refund("k", duplicateRefund)) // a repeat changes nothing
	must(s.Admin.SetRefundStatus(ctx, id, "succeeded"))
	must(s.Admin.SetRefundStatus(ctx, id, "failed"))
	dispute := sandbox.Dispute{DisputeID: "dp_1", Tenant: "acme-in", PaymentID: "pay_8472_a", Status: "open"}
	s.Load(t, sandbox.Ledger{Disputes: []sandbox.Dispute{dispute}})
	dispute.Status = "won"
	s.Load(t, sandbox.Ledger{Disputes: []sandbox.Dispute{dispute}})
	ours := " " + id + " refund:req-8472:pay_8472_b"
	h.await(t, "authorization.expired pay_8472_b", "capture.updated pay_8472_b", "capture.settled pay_8472_b",
		"refund.created"+ours, "refund.updated"+ours, "refund.failed"+ours, "dispute.opened dp_1", "dispute.updated dp_1")
	_, ids := h.all()
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 8 {
		t.Errorf("ids %q", ids)
	}
	c := s.Ledger(t).Captures
	if i := slices.IndexFunc(c, func(c sandbox.Capture) bool { return c.PaymentID == "pay_8472_b" }); !c[i].Settled || c[i].SettledAt == nil || c[i].CapturedAt == nil || c[i].Status != "settled" {
		t.Errorf("settled as %+v", c[i])
	}
	if err := s.Admin.SetCaptureStatus(ctx, "globex", "pay_8472_b", "settled"); err == nil || !strings.Contains(err.Error(), "payment_not_found") {
		t.Errorf("another tenant's payment: %v", err)
	}
}

func TestWebhookIsRetried(t *testing.T) {
	t.Parallel()
	h, to, clock := newHooks(t)
	h.refuse = 2
	s := sandboxtest.Start(t, tellsTo(to, clock))
	s.Load(t, sandboxtest.Hold())
	if err := s.Admin.SetCaptureStatus(t.Context(), "acme-in", "pay_8472_b", "settled"); err != nil {
		t.Fatal(err)
	}
	h.await(t, "capture.settled pay_8472_b")
}

// B09, B10: webhooks can be had before the answer, doubled, and late.
func TestEventFaults(t *testing.T) {
	t.Parallel()
	h, to, clock := newHooks(t)
	s := sandboxtest.Start(t, tellsTo(to, clock))
	s.Load(t, sandboxtest.Duplicate())
	setFaults(t, s, "webhook_copies,copies=3", "webhook_before_answer", "webhook_delay,for=50ms,tenant=acme-in,order=8472,payment=pay_8472_b", "webhook_lost,payment=pay_8472_a")
	id := parseRefund(t, send(t, s.URL, refund("k", duplicateRefund))).RefundID
	told, ids := h.all()
	if want := "refund.created " + id + " refund:req-8472:pay_8472_b"; len(told) != 3 || told[0] != want || ids[0] != ids[2] {
		t.Errorf("told before the answer: %q %q", told, ids)
	}
	struck(t, s, 1, 1, 1, 0)
	setFaults(t, s)
	if err := s.Admin.SetRefundStatus(t.Context(), id, "failed"); err != nil {
		t.Fatal(err)
	}
	h.await(t, append(told, strings.Replace(told[0], "created", "failed", 1))...)
}

func TestBadEventsEndpoint(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	good := webhook.FormatSecret(bytes.Repeat([]byte{5}, 32))
	for _, e := range []sandbox.Events{{URL: "http://127.0.0.1:1/", Secret: "x"}, {URL: "ftp://x", Secret: good}, {Secret: good}} {
		if s.SendEvents(e) == nil {
			t.Errorf("%+v is taken", e)
		}
	}
}

// stampServer takes webhooks unread and tells the times they bear.
func stampServer(t *testing.T, into chan<- string) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e struct{ Timestamp time.Time }
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		sec, err := strconv.ParseInt(r.Header.Get(webhook.HeaderTimestamp), 10, 64)
		if err != nil {
			t.Error(err)
		}
		into <- stampOf(e.Timestamp, time.Unix(sec, 0))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

func stampOf(body, signature time.Time) string {
	return body.UTC().Format(time.RFC3339) + " " + signature.UTC().Format(time.RFC3339)
}
