package deliveries_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/gateway/deliveries"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	delivered  = amendsv1.DeliveryStatus_DELIVERY_STATUS_DELIVERED
	givenUp    = amendsv1.DeliveryStatus_DELIVERY_STATUS_GIVEN_UP
	suppressed = amendsv1.DeliveryStatus_DELIVERY_STATUS_SUPPRESSED
	pending    = amendsv1.DeliveryStatus_DELIVERY_STATUS_PENDING
)

// B24: one webhook per case and version, with two replicas, views that come
// again and a restart of both.
func TestOneWebhookPerReplyB24(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const cases = 40
	stops := []func(){w.run(w.endpoint(), hurried(), nil), w.run(w.endpoint(), hurried(), nil)}
	id := func(i int) string { return "req-" + strconv.Itoa(i) }
	for i := range cases {
		w.publish(view(id(i), 5, 5))
		w.publish(view(id(i), 5, 5)) // sent again after a lost acknowledgement
		w.publish(view(id(i), 9, 5, 9))
	}
	for i := range cases {
		w.await(id(i), 2, delivered)
	}
	for _, stop := range stops {
		stop()
	}
	w.run(w.endpoint(), hurried(), nil) // walks all views again
	w.publish(view("req-last", 5, 5))
	w.await("req-last", 1, delivered)
	seen := map[string]int{}
	for _, r := range w.receiver.all() {
		seen[r.id]++
	}
	for i := range cases {
		for _, version := range []uint64{5, 9} {
			if n := seen[deliveries.ID("acme-in", id(i), version)]; n != 1 {
				t.Errorf("the reply of %s v%d came %d times", id(i), version, n)
			}
		}
	}
	if len(seen) != 2*cases+1 {
		t.Errorf("%d webhooks of %d replies", len(seen), 2*cases+1)
	}
}

// What is sent is what the customer may see, of the moment of the reply.
func TestBodyIsOfTheReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := view("req-1", 9, 4)
	v.Closed = true
	w.publish(v)
	w.run(w.endpoint(), hurried(), nil)
	d := w.await("req-1", 1, delivered)[0]
	got := w.receiver.all()
	if len(got) != 1 || got[0].id != d.GetWebhookId() {
		t.Fatalf("got %+v, logged %v", got, d)
	}
	sent := v.GetReplies()[0].GetSentAt().AsTime().Format(time.RFC3339Nano)
	want := `{"type":"case.reply","timestamp":"` + sent + `","data":{"case_id":"req-1","request_id":"req-1","state":"INVESTIGATING",` +
		`"reply":{"kind":"holding","text":"We look again.","sent_at":"` + sent + `","version":4}}}`
	if got[0].body != want || !json.Valid([]byte(got[0].body)) {
		t.Errorf("sent %s\nwant %s", got[0].body, want)
	}
	if len(d.GetAttempts()) != 1 || d.GetAttempts()[0].GetStatusCode() != http.StatusNoContent || d.GetSettledAt() == nil || d.GetNextAt() != nil {
		t.Errorf("logged %v", d)
	}
}

func TestRetriesUntilTheReceiverTakesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 0
	w.receiver.answers(func(request) int {
		if n++; n < 4 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	w.publish(view("req-1", 5, 5))
	w.run(w.endpoint(), hurried(), nil)
	d := w.await("req-1", 1, delivered)[0]
	if len(d.GetAttempts()) != 4 || d.GetBegun() != 4 {
		t.Errorf("attempts %v", d.GetAttempts())
	}
	first := w.receiver.all()[0]
	for i, r := range w.receiver.all() {
		if r != first || d.GetAttempts()[i].GetNumber() != uint32(i+1) {
			t.Errorf("attempt %d differs: %+v, %v", i+1, r, d.GetAttempts()[i])
		}
	}
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answers(func(request) int { return http.StatusBadGateway })
	w.publish(view("req-1", 5, 5))
	w.run(w.endpoint(), hurried(), nil)
	d := w.await("req-1", 1, givenUp)[0]
	if len(d.GetAttempts()) != webhook.Attempts() || len(w.receiver.all()) != webhook.Attempts() {
		t.Errorf("%d attempts logged, %d made, want %d", len(d.GetAttempts()), len(w.receiver.all()), webhook.Attempts())
	}
}

// An attempt whose process died is made again when its lease has ended, and not
// before.
func TestLeaseOfADeadReplica(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := view("req-1", 5, 5)
	w.publish(v)
	lease := time.Now().Add(500 * time.Millisecond)
	w.write(w.gateway, subject.Delivery("acme-in", "req-1"), &amendsv1.DeliveryLog{
		Tenant: "acme-in", CaseId: "req-1", Channel: "web", Deliveries: []*amendsv1.Delivery{{
			Version: 5, WebhookId: deliveries.ID("acme-in", "req-1", 5), Kind: "holding", Status: pending, Begun: 1,
			CreatedAt: timestamppb.Now(), NextAt: timestamppb.New(lease),
		}},
	})
	w.run(w.endpoint(), hurried(), nil)
	d := w.await("req-1", 1, delivered)[0]
	if len(d.GetAttempts()) != 1 || d.GetAttempts()[0].GetNumber() != 2 || d.GetAttempts()[0].GetAt().AsTime().Before(lease) {
		t.Errorf("lease until %s, attempts %v", lease, d.GetAttempts())
	}
}

// An endpoint that fails for long is disabled; what comes due is suppressed
// but for a probe, and the first success enables it again.
func TestFailingEndpointIsDisabledAndProbed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answers(func(request) int { return http.StatusInternalServerError })
	times := hurried()
	times.Failing = 0
	stop := w.run(w.endpoint(), times, nil)
	for i := range 3 { // 24 attempts, of which the last find it disabled
		w.publish(view("req-"+strconv.Itoa(i), 5, 5))
	}
	bustest.Await(t, "the endpoint is disabled", func() bool {
		w.publish(view("req-after", 5, 5))
		d := w.log("req-after")
		return len(d) == 1 && d[0].GetStatus() == suppressed
	})
	attempts := len(w.receiver.all())
	if attempts < 20 || attempts > 23 {
		t.Errorf("%d attempts before it was disabled", attempts)
	}
	stop()
	w.receiver.answers(func(request) int { return http.StatusOK })
	times.Probe = time.Millisecond
	w.run(w.endpoint(), times, nil)
	n := 0
	bustest.Await(t, "a probe enables the endpoint", func() bool {
		n++ // what comes due beside a probe is suppressed
		id := "req-probe-" + strconv.Itoa(n)
		w.publish(view(id, 5, 5))
		var d []*amendsv1.Delivery
		bustest.Await(t, "it is settled", func() bool {
			d = w.log(id)
			return len(d) == 1 && d[0].GetSettledAt() != nil
		})
		return d[0].GetStatus() == delivered
	})
	w.publish(view("req-next", 5, 5))
	w.await("req-next", 1, delivered)
	w.await("req-after", 1, suppressed) // stays so
}

// 410 disables an endpoint at once; a later since enables it.
func TestGoneEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answers(func(request) int { return http.StatusGone })
	times := hurried()
	times.Probe = time.Millisecond
	stop := w.run(w.endpoint(), times, nil)
	w.publish(view("req-1", 5, 5))
	w.await("req-1", 1, givenUp)
	w.publish(view("req-2", 5, 5))
	w.await("req-2", 1, suppressed)
	if n := len(w.receiver.all()); n != 1 {
		t.Errorf("%d attempts", n)
	}
	stop()
	w.receiver.answers(func(request) int { return http.StatusOK })
	e := w.endpoint()
	e.Since = time.Now()
	w.run(e, times, nil)
	w.publish(view("req-3", 5, 5))
	w.await("req-3", 1, delivered)
}

func TestOnlyFreshRepliesOfTheChannelAreTakenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint()
	e.Since = time.Now().Add(-time.Hour)
	old, before, other := view("req-old", 5, 5), view("req-before", 5, 5), view("req-other", 5, 5)
	old.Replies[0].SentAt = timestamppb.New(time.Now().Add(-4 * 24 * time.Hour))
	before.Replies[0].SentAt = timestamppb.New(time.Now().Add(-2 * time.Hour))
	other.Channel = "app"
	beta := view("req-beta", 5, 5)
	beta.Tenant = "beta"
	for _, v := range []*amendsv1.CaseView{old, before, other, beta, view("req-none", 5), view("req-1", 5, 5)} {
		w.publish(v)
	}
	w.run(e, hurried(), nil)
	w.await("req-1", 1, delivered)
	w.publish(view("req-2", 5, 5))
	w.await("req-2", 1, delivered)
	if n := len(w.receiver.all()); n != 2 {
		t.Errorf("%d webhooks, want 2", n)
	}
}

// A log that was lost costs a repeat under the same id, and no reply.
func TestLostLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(view("req-1", 5, 5))
	stop := w.run(w.endpoint(), hurried(), nil)
	w.await("req-1", 1, delivered)
	stop()
	w.Purge(roles.StreamDeliveries)
	w.run(w.endpoint(), hurried(), nil)
	w.await("req-1", 1, delivered)
	got := w.receiver.all()
	if len(got) != 2 || got[0] != got[1] {
		t.Errorf("got %+v", got)
	}
}

// After another broker has answered the views are walked again, while they are
// being consumed.
func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.endpoint(), hurried(), nil)
	w.publish(view("req-1", 5, 5))
	w.await("req-1", 1, delivered)
	w.Purge(roles.StreamDeliveries) // as a crash may
	w.Stop()
	w.Start()
	bustest.Await(t, "the broker is back", func() bool { return w.gateway.Ready() == nil && w.views.Ready() == nil })
	w.await("req-1", 1, delivered)
	w.publish(view("req-2", 5, 5))
	w.await("req-2", 1, delivered)
}

// A private address is refused when it is dialled, and the receiver hears
// nothing. Logs hold no URL, text or secret.
func TestPrivateEndpointIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.endpoint()
	e.Private = false
	e.URL = strings.Replace(e.URL, "http://127.0.0.1", "https://localhost", 1)
	var mu sync.Mutex
	var text bytes.Buffer
	log := slog.New(slog.NewJSONHandler(writer(func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		text.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.run(e, hurried(), log)
	w.publish(view("req-1", 5, 5))
	d := w.await("req-1", 1, givenUp)[0]
	for _, a := range d.GetAttempts() {
		if a.GetReason() != string(webhook.ReasonAddress) || a.GetStatusCode() != 0 {
			t.Errorf("attempt %v", a)
		}
	}
	if n := len(w.receiver.all()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(text.String(), `"reason":"address_refused"`) {
		t.Errorf("the log does not say it: %s", text.String())
	}
	for _, secret := range []string{"We look again", "whsec_", "localhost", "cust_5519"} {
		if strings.Contains(text.String(), secret) {
			t.Errorf("the log says %q", secret)
		}
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestOneEndpointPerChannel(t *testing.T) {
	t.Parallel()
	e := deliveries.Endpoint{Tenant: "acme-in", Channel: "web", URL: "https://example.com", Secrets: keys(t)}
	if _, err := deliveries.New([]deliveries.Endpoint{e, e}, deliveries.Deps{Now: time.Now, Meter: noop.NewMeterProvider().Meter("x")}); err == nil {
		t.Error("two endpoints for one channel")
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q, t0 := deliveries.NewQueue(), time.Unix(1000, 0)
	q.Set("b", t0.Add(2*time.Second))
	q.Set("a", t0.Add(3*time.Second))
	q.Set("a", t0.Add(time.Second))
	q.Set("c", t0)
	q.Remove("c")
	q.Remove("never there")
	if id, wait := q.Pop(t0); id != "" || wait != time.Second {
		t.Errorf("%q in %s", id, wait)
	}
	for _, want := range []string{"a", "b", ""} {
		if id, _ := q.Pop(t0.Add(time.Minute)); id != want {
			t.Errorf("got %q, want %q", id, want)
		}
	}
	for i := range deliveries.MaxQueue + 1 {
		q.Set(fmt.Sprint(i), t0)
	}
	if q.Room() {
		t.Error("a full queue has room")
	}
	for range deliveries.MaxQueue {
		q.Pop(t0)
	}
	if !q.Room() || q.Room() {
		t.Error("what did not fit is looked for once")
	}
}
