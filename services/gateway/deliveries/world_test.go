package deliveries_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/gateway/deliveries"
)

// world is a broker, somebody who writes views, and a receiver.
type world struct {
	*bustest.Broker
	t        *testing.T
	views    *bus.Conn
	gateway  *bus.Conn // reads the log
	receiver *receiver
}

func newWorld(t *testing.T) *world {
	t.Helper()
	b := bustest.Desk(t, bustest.Options{RequestTimeout: time.Second})
	return &world{Broker: b, t: t, views: b.Connect(roles.Orchestrator), gateway: b.Connect(roles.Gateway), receiver: newReceiver(t)}
}

// receiver is a channel's endpoint.
type receiver struct {
	*httptest.Server
	mu sync.Mutex
	// got is what arrived, in order; answer says how it is answered.
	got    []request
	answer func(request) int
}

type request struct {
	id   string
	body string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{answer: func(request) int { return http.StatusNoContent }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		if err != nil {
			t.Errorf("the body ended early: %v", err)
		}
		id, err := keys(t).Verify(q.Header, text, time.Now())
		if err != nil {
			t.Errorf("the signature is not right: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		q1 := request{id, string(text)}
		r.got = append(r.got, q1)
		w.WriteHeader(r.answer(q1))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f func(request) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = f
}

func (r *receiver) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

func keys(t testing.TB) webhook.Secrets {
	s, err := webhook.ParseSecrets(webhook.FormatSecret(bytes.Repeat([]byte{9}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) endpoint() deliveries.Endpoint {
	return deliveries.Endpoint{Tenant: "acme-in", Channel: "web", URL: w.receiver.URL, Secrets: keys(w.t), Private: true}
}

// hurried waits milliseconds where an outbox waits for longer.
func hurried() deliveries.Times {
	return deliveries.Times{
		Follow: 20 * time.Millisecond, Lease: 12 * time.Second, Probe: time.Hour, Failing: time.Hour, Rewind: time.Millisecond,
		Delay: func(id string, failed int) (time.Duration, bool) {
			_, ok := webhook.Delay(id, failed)
			return 5 * time.Millisecond, ok
		},
	}
}

// run starts an outbox on a connection of its own and gives how to stop it.
func (w *world) run(e deliveries.Endpoint, times deliveries.Times, log *slog.Logger) (stop func()) {
	w.t.Helper()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	o, err := deliveries.New([]deliveries.Endpoint{e}, deliveries.Deps{
		Bus: w.Connect(roles.Gateway), Log: log, Meter: noop.NewMeterProvider().Meter("x"), Now: time.Now,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	o.Hurry(times)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the outbox ended with %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// view gives a view of a case at a version, which sent replies at some.
func view(caseID string, version uint64, replies ...uint64) *amendsv1.CaseView {
	v := &amendsv1.CaseView{
		Tenant: "acme-in", CaseId: caseID, RequestId: caseID, CustomerId: "cust_5519", Channel: "web", Version: version, State: "HOLD_FOR_EVIDENCE",
		OpenedAt: timestamppb.New(time.Now()), UpdatedAt: timestamppb.New(time.Now()), BodySha256: "never shown", TraceId: "never shown",
	}
	for i := uint64(1); i <= version; i++ {
		v.Timeline = append(v.Timeline, &amendsv1.ViewEntry{Version: i, State: map[bool]string{true: "INVESTIGATING", false: "HOLD_FOR_EVIDENCE"}[i < 5], At: timestamppb.New(time.Now())})
	}
	for _, r := range replies {
		v.Replies = append(v.Replies, &amendsv1.ViewReply{Kind: "holding", Text: "We look again.", SentAt: timestamppb.New(time.Now()), Version: r})
	}
	return v
}

func (w *world) publish(v *amendsv1.CaseView) {
	w.t.Helper()
	w.write(w.views, subject.View(v.GetTenant(), v.GetCaseId()), v)
}

func (w *world) write(c *bus.Conn, subj string, m proto.Message) {
	w.t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := c.Publish(w.t.Context(), subj, data); err != nil {
		w.t.Fatal(err)
	}
}

// log gives the deliveries of a case.
func (w *world) log(caseID string) []*amendsv1.Delivery {
	w.t.Helper()
	l, err := deliveries.Log(w.t.Context(), w.gateway, "acme-in", caseID)
	if err != nil {
		w.t.Fatal(err)
	}
	return l.GetDeliveries()
}

// await waits until all n deliveries of a case have a status.
func (w *world) await(caseID string, n int, want amendsv1.DeliveryStatus) []*amendsv1.Delivery {
	w.t.Helper()
	var got []*amendsv1.Delivery
	bustest.Await(w.t, caseID+" is "+deliveries.StatusName(want), func() bool {
		got = w.log(caseID)
		for _, d := range got {
			if d.GetStatus() != want {
				return false
			}
		}
		return len(got) == n
	})
	return got
}
