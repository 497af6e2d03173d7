package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var providerKey = webhook.FormatSecret(bytes.Repeat([]byte{3}, 32))

func secretFile(t *testing.T, secret string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// takesEvents makes a gateway take the provider's events of acme-in.
func takesEvents(t *testing.T) func(*Config) {
	file := secretFile(t, providerKey)
	return func(c *Config) { c.Provider = Provider{SecretFiles: []string{file}, Tenants: []string{"acme-in"}} }
}

func eventBody(kind, order, object, reference string) string {
	data := map[string]string{"tenant": "acme-in", "order_id": order, "object_id": object}
	if reference != "" {
		data["reference"] = reference
	}
	out, _ := json.Marshal(map[string]any{"type": kind, "timestamp": "2026-03-12T10:14:00Z", "data": data, "livemode": false})
	return string(out)
}

// signed gives the headers of an event.
func signed(t *testing.T, id, body string) http.Header {
	t.Helper()
	s, err := webhook.ParseSecrets(providerKey)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Sign(id, time.Now(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func tell(t *testing.T, base string, header http.Header, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+deskapi.ProviderEventsPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
}

// orderView stores a view of a case that is about an order.
func (d *desk) orderView(t *testing.T, caseID, order, state string) {
	t.Helper()
	v := view(caseID, 5, state)
	v.OrderId, v.Channel = order, "web"
	d.publish(t, v)
}

// untilListed waits until the read model knows the cases of cust_5519.
func (d *desk) untilListed(t *testing.T, base string, n int) {
	t.Helper()
	bustest.Await(t, "the read model knows the cases", func() bool {
		var list deskapi.CaseList
		got := ask(t, http.MethodGet, base+deskapi.CasesPath, webKey, "")
		return got.status == http.StatusOK && json.Unmarshal([]byte(got.body), &list) == nil && len(list.Cases) == n
	})
}

// events gives the provider's events that are stored, by case.
func (d *desk) events(t *testing.T) map[string][]*amendsv1.Envelope {
	t.Helper()
	out := map[string][]*amendsv1.Envelope{}
	for _, env := range d.stored(t) {
		if env.GetType() == envelope.ProviderEvent {
			out[env.GetCaseId()] = append(out[env.GetCaseId()], env)
		}
	}
	return out
}

// B74: only what the provider signed, with its timestamp, near now; the same
// event again is the same message.
func TestProviderEventIsVerifiedB74(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gatewayWith(t, takesEvents(t))
	d.orderView(t, "req-1", "8472", "HOLD_FOR_EVIDENCE")
	d.untilListed(t, base, 1)
	body := eventBody("capture.settled", "8472", "pay_8472_b", "")
	for name, spoil := range map[string]func(http.Header){
		"stripped":  func(h http.Header) { h.Del(webhook.HeaderTimestamp) },
		"swapped":   func(h http.Header) { h.Set(webhook.HeaderTimestamp, strconv.FormatInt(time.Now().Unix()-1000, 10)) },
		"other id":  func(h http.Header) { h.Set(webhook.HeaderID, "evt_2") },
		"unsigned":  func(h http.Header) { h.Del(webhook.HeaderSignature) },
		"forged":    func(h http.Header) { h.Set(webhook.HeaderSignature, "v1,"+strings.Repeat("A", 43)+"=") },
		"a channel": func(h http.Header) { clear(h); h.Set("Authorization", "Bearer "+webKey) },
	} {
		h := signed(t, "evt_1", body)
		spoil(h)
		got := tell(t, base, h, body)
		if p := got.problem(t); got.status != http.StatusUnauthorized || p.Code != deskapi.CodeUnauthenticated {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if n := len(d.events(t)); n != 0 {
		t.Fatalf("%d events got through", n)
	}
	h := signed(t, "evt_1", body)
	for range 3 {
		if got := tell(t, base, h.Clone(), body); got.status != http.StatusAccepted || got.body != "" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	stored := d.events(t)["req-1"]
	if len(stored) != 1 {
		t.Fatalf("the event is stored %d times", len(stored))
	}
	for _, env := range stored {
		var ev amendsv1.ProviderEvent
		if err := proto.Unmarshal(env.GetPayload(), &ev); err != nil {
			t.Fatal(err)
		}
		if env.GetMessageId() != stored[0].GetMessageId() || ev.GetKind() != "capture.settled" || ev.GetOrderId() != "8472" || ev.GetObjectId() != "pay_8472_b" {
			t.Errorf("stored %v with %v", env, &ev)
		}
	}
}

func TestProviderEventIsDecodedStrictly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gatewayWith(t, takesEvents(t))
	good := eventBody("capture.settled", "8472", "pay_1", "")
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"fine":             {good, http.StatusAccepted},
		"a kind we ignore": {eventBody("payout.paid", "8472", "pay_1", ""), http.StatusAccepted},
		"empty":            {"", http.StatusBadRequest},
		"no object":        {`[]`, http.StatusBadRequest},
		"no type":          {`{"data":{"tenant":"acme-in","order_id":"8472","object_id":"x"}}`, http.StatusBadRequest},
		"type a number":    {`{"type":1,"data":{"tenant":"acme-in","order_id":"8472","object_id":"x"}}`, http.StatusBadRequest},
		"type null":        {`{"type":null,"data":{"tenant":"acme-in","order_id":"8472","object_id":"x"}}`, http.StatusBadRequest},
		"no data":          {`{"type":"capture.settled"}`, http.StatusBadRequest},
		"twice":            {`{"type":"a","type":"capture.settled","data":{"tenant":"acme-in","order_id":"8472","object_id":"x"}}`, http.StatusBadRequest},
		"order twice":      {`{"type":"a","data":{"tenant":"acme-in","order_id":"1","order_id":"8472","object_id":"x"}}`, http.StatusBadRequest},
		"something after":  {good + "{}", http.StatusBadRequest},
		"not UTF-8":        {strings.Replace(good, "8472", "84\xff72", 1), http.StatusBadRequest},
		"B55 wildcard":     {eventBody("capture.settled", "8472.>", "pay_1", ""), http.StatusBadRequest},
		"B55 star":         {eventBody("capture.settled", "*", "pay_1", ""), http.StatusBadRequest},
		"B55 long":         {eventBody("capture.settled", strings.Repeat("8", 300), "pay_1", ""), http.StatusBadRequest},
		"large":            {good[:len(good)-1] + `,"x":"` + strings.Repeat("x", maxEvent) + `"}`, http.StatusRequestEntityTooLarge},
	} {
		bustest.Await(t, "the read model is ready", func() bool {
			return tell(t, base, signed(t, "evt_0", good), good).status == http.StatusAccepted
		})
		if got := tell(t, base, signed(t, "evt_1", c.body), c.body); got.status != c.want {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, c.want)
		}
	}
	if got := tell(t, d.gateway(t), signed(t, "evt_1", good), good); got.status != http.StatusNotFound {
		t.Errorf("without a secret: %d", got.status)
	}
}

// An event goes to the open cases of its order and to the case that made the
// refund it is about, in its own tenant only.
func TestProviderEventGoesToTheOrdersCases(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gatewayWith(t, takesEvents(t))
	d.orderView(t, "req-open", "8472", "HOLD_FOR_EVIDENCE")
	d.orderView(t, "req-done", "8472", "VERIFIED_CLOSED")
	d.orderView(t, "req-own", "8472", "VERIFIED_CLOSED")
	d.orderView(t, "req-other", "9000", "HOLD_FOR_EVIDENCE")
	d.untilListed(t, base, 4)
	foreign := view("req-open", 5, "HOLD_FOR_EVIDENCE")
	foreign.Tenant, foreign.OrderId = "beta", "8472"
	d.publish(t, foreign)
	own := "refund:req-own:pay_8472_b"
	for _, c := range []struct {
		name, kind, order, reference string
		want                         []string
	}{
		{"settled", "capture.settled", "8472", "", []string{"req-open"}},
		{"failed", "refund.failed", "8472", own, []string{"req-open", "req-own"}},
		{"made by us", "refund.created", "8472", own, []string{"req-open"}},
		{"made elsewhere", "refund.created", "8472", "desk 12", []string{"req-open"}},
		{"a case that is none", "refund.failed", "8472", "refund:req-none:pay_1", []string{"req-open"}},
		{"its case is about another order by now", "refund.failed", "8472", "refund:req-other:pay_1", []string{"req-open", "req-other"}},
		{"a capture with a reference", "capture.settled", "8472", own, []string{"req-open"}},
		{"no case", "capture.settled", "7777", "", nil},
		{"an unknown kind", "refund.imagined", "8472", own, nil},
	} {
		before := d.events(t)
		body := eventBody(c.kind, c.order, "obj_1", c.reference)
		if got := tell(t, base, signed(t, "evt_"+strings.ReplaceAll(c.name, " ", "_"), body), body); got.status != http.StatusAccepted {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
		after := d.events(t)
		want := map[string]int{}
		for _, id := range c.want {
			want[id] = 1
		}
		for _, id := range []string{"req-open", "req-done", "req-own", "req-other", "req-none"} {
			if n := len(after[id]) - len(before[id]); n != want[id] {
				t.Errorf("%s: %d events at %s, want %d", c.name, n, id, want[id])
			}
		}
	}
	body := strings.Replace(eventBody("capture.settled", "8472", "obj_1", ""), "acme-in", "beta", 1)
	before := len(d.stored(t))
	if got := tell(t, base, signed(t, "evt_beta", body), body); got.status != http.StatusAccepted || len(d.stored(t)) != before {
		t.Errorf("another tenant: %d, %d new messages", got.status, len(d.stored(t))-before)
	}
}

// Without Redis nobody knows all the cases of an order: the provider is to send
// again, and the case that is named has it already.
func TestProviderEventWithoutTheReadModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gatewayWith(t, takesEvents(t))
	d.orderView(t, "req-own", "8472", "VERIFIED_CLOSED")
	d.untilListed(t, base, 1)
	d.redis.Close()
	body := eventBody("refund.failed", "8472", "rf_1", "refund:req-own:pay_8472_b")
	got := tell(t, base, signed(t, "evt_1", body), body)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := len(d.events(t)["req-own"]); n != 1 {
		t.Errorf("%d events at the case that is named", n)
	}
}

// The log of a case's webhooks is its channel's to see.
func TestDeliveriesOfACase(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var mu sync.Mutex
	got := 0
	receiver := receive(t, func() { mu.Lock(); got++; mu.Unlock() })
	file := secretFile(t, providerKey)
	base := d.gatewayWith(t, func(c *Config) {
		c.Channels[1].Webhook = Webhook{URL: receiver, SecretFiles: []string{file}, AllowPrivate: true}
	})
	v := view("req-1", 5, "HOLD_FOR_EVIDENCE")
	v.Channel = "web"
	v.Replies = []*amendsv1.ViewReply{{Kind: "holding", Text: "We look again.", SentAt: nowStamp(), Version: 5}}
	d.publish(t, v)
	var log deskapi.Deliveries
	bustest.Await(t, "the reply is delivered", func() bool {
		a := ask(t, http.MethodGet, base+deskapi.DeliveriesPath("req-1"), webKey, "")
		return a.status == http.StatusOK && json.Unmarshal([]byte(a.body), &log) == nil && len(log.Deliveries) == 1 && log.Deliveries[0].Status == "delivered"
	})
	one := log.Deliveries[0]
	if log.CaseID != "req-1" || one.Version != 5 || len(one.Attempts) != 1 || one.Attempts[0].StatusCode != 200 || one.Attempts[0].Reason != "delivered" || one.SettledAt == nil {
		t.Errorf("log %+v", log)
	}
	unknown := ask(t, http.MethodGet, base+deskapi.DeliveriesPath("req-none"), webKey, "")
	for name, a := range map[string]answer{
		"another customer": ask(t, http.MethodGet, base+deskapi.DeliveriesPath("req-1"), otherKey, ""),
		"another channel":  ask(t, http.MethodGet, base+deskapi.DeliveriesPath("req-1"), appKey, "", deskapi.HeaderCustomer, "cust_5519"),
		"another tenant":   ask(t, http.MethodGet, base+deskapi.DeliveriesPath("req-1"), betaKey, ""),
	} {
		if a.status != http.StatusNotFound || a.body != unknown.body {
			t.Errorf("TENANT-1: %s: %d %s", name, a.status, a.body)
		}
	}
	if d.broker.Count(roles.StreamDeliveries, subject.Delivery("acme-in", "req-1")) != 1 {
		t.Error("the log is not one message")
	}
	mu.Lock()
	defer mu.Unlock()
	if got != 1 {
		t.Errorf("the receiver got %d", got)
	}
}

// FuzzDecodeEvent: what is read as an event has plain tokens only (B55), and
// reading it from what was read gives the same.
func FuzzDecodeEvent(f *testing.F) {
	f.Add([]byte(eventBody("refund.failed", "8472", "rf_1", "refund:req-8472:pay_1")))
	f.Add([]byte(`{"type":"a","data":{"tenant":"t","order_id":"o","object_id":"x"},"data":{}}`))
	f.Add([]byte(`{"type":"\ud800","data":{"tenant":"*","order_id":">","object_id":"a.b","reference":null}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ev, err := decodeEvent(body)
		if err != nil {
			return
		}
		if ident.Tokens("tenant", ev.tenant, "order", ev.order, "object", ev.object) != nil || ev.kind == "" || len(ev.kind) > maxKind || len(ev.reference) > maxReference {
			t.Errorf("read as %+v", ev)
		}
		if own := ev.ownCase(); own != "" && ident.Token(own) != nil {
			t.Errorf("the case %q is no token", own)
		}
		again, err := json.Marshal(map[string]any{"type": ev.kind, "data": map[string]string{
			"tenant": ev.tenant, "order_id": ev.order, "object_id": ev.object, "reference": ev.reference,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if same, err := decodeEvent(again); err != nil || same != ev {
			t.Errorf("%+v read again as %+v, %v", ev, same, err)
		}
	})
}
