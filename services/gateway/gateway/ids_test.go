package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// untouched is the real broker, which counts what it is asked.
type untouched struct {
	broker
	calls atomic.Int64
}

func (b *untouched) Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...bus.PublishOption) (uint64, error) {
	b.calls.Add(1)
	return b.broker.Send(ctx, subj, env, payload, opts...)
}

func (b *untouched) LastDirect(ctx context.Context, stream, subj string) (bus.Stored, error) {
	b.calls.Add(1)
	return b.broker.LastDirect(ctx, stream, subj)
}

var notIDs = []string{"8472.>", "*", "a b", "", strings.Repeat("8", 300), ">", "a\x00b", "ord\u202e8472", "../x", "a:b"}

// Bug B55: wherever an id is taken, text that is none is refused before
// a subject or a key is built from it.
func TestNoSubjectOrKeyIsBuiltFromWhatIsNoIDB55(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := &untouched{broker: d.broker.Connect(roles.Gateway)}
	g, h := d.handler(t.Context(), t, b)
	readyModel(t, g)
	call(t, h, http.MethodGet, "/v1/cases", webKey, "") // makes the counters of this caller
	call(t, h, http.MethodPost, "/v1/cases", webKey, "")
	call(t, h, http.MethodPost, "/v1/cases", demoKey, "")
	keys := strings.Join(d.redis.Keys(), " ")
	key := []string{"Idempotency-Key", "k-1"}
	for _, id := range notIDs {
		// In a path.
		for _, op := range g.operations() {
			if !strings.Contains(op.path, "{id}") {
				continue
			}
			body := map[string]string{deskapi.MessagesPath("{id}"): `{"message":"m"}`}[op.path]
			a := call(t, h, op.method, strings.Replace(op.path, "{id}", url.PathEscape(id), 1), webKey, body, key...)
			if redirected := a.status/100 == 3; a.status != http.StatusNotFound && (!redirected || id != "") {
				t.Errorf("%s %s as %q: %d %s", op.method, op.path, id, a.status, a.body)
			}
		}
		// In the header that names a customer.
		if strings.ContainsAny(id, "\x00") {
			continue // no header can hold it
		}
		for _, op := range g.operations() {
			if op.path == deskapi.OpenAPIPath || op.path == deskapi.ProviderEventsPath {
				continue // nobody's
			}
			a := call(t, h, op.method, strings.Replace(op.path, "{id}", "req-1", 1), appKey, `{"message":"m"}`, append([]string{deskapi.HeaderCustomer, id}, key...)...)
			if p := a.problem(t); a.status != http.StatusBadRequest || p.Code != deskapi.CodeCustomerMissing {
				t.Errorf("%s %s for customer %q: %d %s", op.method, op.path, id, a.status, a.body)
			}
		}
		// In a body.
		body, err := json.Marshal(deskapi.Post{Message: "m", CaseID: id})
		if err != nil {
			t.Fatal(err)
		}
		if id == "" {
			body = []byte(`{"message":"m","case_id":""}`)
		}
		a := call(t, h, http.MethodPost, "/v1/cases", demoKey, string(body), key...)
		if p := a.problem(t); a.status != http.StatusBadRequest || p.Code != deskapi.CodeBodyInvalid {
			t.Errorf("case id %q: %d %s", id, a.status, a.body)
		}
		// In a query; none at all is the beginning.
		for _, name := range []string{deskapi.ParamCursor, deskapi.ParamState} {
			if a := call(t, h, http.MethodGet, "/v1/cases?"+name+"="+url.QueryEscape(id), webKey, ""); a.status != http.StatusBadRequest && (id != "" || name != deskapi.ParamCursor) {
				t.Errorf("%s %q: %d %s", name, id, a.status, a.body)
			}
		}
		// A request id that is none is replaced.
		if a := call(t, h, http.MethodGet, "/v1/cases", webKey, "", deskapi.HeaderRequestID, id); a.header.Get(deskapi.HeaderRequestID) == id || a.header.Get(deskapi.HeaderRequestID) == "" {
			t.Errorf("request id %q was taken over", id)
		}
	}
	if n := b.calls.Load(); n != 0 {
		t.Errorf("the broker was asked %d times", n)
	}
	if now := strings.Join(d.redis.Keys(), " "); now != keys {
		t.Errorf("keys %q, were %q", now, keys)
	}
	if len(g.views.readers) != 0 {
		t.Errorf("readers left: %v", g.views.readers)
	}
}

// TENANT-1: a case that exists only for people is nobody's: no caller can be its
// customer, and none can choose its id.
func TestCasesOfTheDeskAreNobodys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, h := d.handler(t.Context(), t, d.broker.Connect(roles.Gateway))
	id := ident.FindingCase("find-0123456789ab")
	v := view(id, 1, "HUMAN_HANDOFF")
	v.CustomerId, v.Channel, v.OrderId, v.Queue = ident.Desk, ident.Desk, "", "reconciliation"
	d.publish(t, v)
	for _, path := range []string{deskapi.CasePath(id), "/v1/cases"} {
		a := call(t, h, http.MethodGet, path, appKey, "", deskapi.HeaderCustomer, ident.Desk)
		if p := a.problem(t); a.status != http.StatusBadRequest || p.Code != deskapi.CodeCustomerMissing {
			t.Errorf("%s as the desk: %d %s", path, a.status, a.body)
		}
	}
	for _, key := range []string{webKey, demoKey, otherKey} {
		if a := call(t, h, http.MethodGet, deskapi.CasePath(id), key, ""); a.status != http.StatusNotFound {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	a := call(t, h, http.MethodPost, "/v1/cases", demoKey, `{"message":"m","case_id":"`+id+`"}`, "Idempotency-Key", "k-1")
	if p := a.problem(t); a.status != http.StatusBadRequest || p.Code != deskapi.CodeBodyInvalid {
		t.Errorf("a customer's case with that id: %d %s", a.status, a.body)
	}
	if n := len(d.stored(t)); n != 0 {
		t.Errorf("%d messages stored", n)
	}
}

// The id of a request is in its answer and in what is logged about it, and not
// in the problem: equal problems are equal byte for byte.
func TestRequestIDsAreAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var lines bytes.Buffer
	deps := Deps{Log: slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	b := &broken{broker: d.broker.Connect(roles.Gateway), send: bus.ErrUnavailable, read: bus.ErrUnavailable}
	_, h := d.handlerWith(t.Context(), t, b, deps, func(*Config) {})
	var bodies []string
	for _, id := range []string{"rq-1", "rq-2"} {
		a := call(t, h, http.MethodPost, "/v1/cases", webKey, founding, "Idempotency-Key", "k-1", deskapi.HeaderRequestID, id)
		if a.status != http.StatusServiceUnavailable || a.header.Get(deskapi.HeaderRequestID) != id || strings.Contains(a.body, id) {
			t.Errorf("%d %s %v", a.status, a.body, a.header)
		}
		bodies = append(bodies, a.body)
		call(t, h, http.MethodGet, "/v1/cases/req-1", webKey, "", deskapi.HeaderRequestID, id)
		if n := strings.Count(lines.String(), "request_id="+id); n != 4 { // a warning and an answer, twice
			t.Errorf("%s was logged %d times:\n%s", id, n, lines.String())
		}
	}
	if bodies[0] != bodies[1] {
		t.Errorf("%s\n%s", bodies[0], bodies[1])
	}
	made := call(t, h, http.MethodGet, "/v1/other", webKey, "").header.Get(deskapi.HeaderRequestID)
	if again := call(t, h, http.MethodGet, "/v1/other", webKey, "").header.Get(deskapi.HeaderRequestID); made == "" || made == again {
		t.Errorf("made ids %q and %q", made, again)
	}
}

// reads notes which views are read.
type reads struct {
	broker
	subjects chan string
}

func (r *reads) LastDirect(ctx context.Context, stream, subj string) (bus.Stored, error) {
	r.subjects <- stream + " " + subj
	return r.broker.LastDirect(ctx, stream, subj)
}

// Bug B73: somebody else's case takes the same course as one that does not
// exist. Both read the one view, stored and again at each poll, until the wait
// is over; nothing ends earlier and nothing else is looked at, so neither the
// answer nor its time tells them apart.
func TestForeignCaseTakesTheCourseOfAnUnknownOneB73(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.publish(t, view("req-8472", 5, "AWAITING_APPROVAL"))
	d.publish(t, view("req-8472-2", 5, "AWAITING_APPROVAL"))
	for _, op := range []string{opShow, opEvents, opMessage, opCancel, opRequest} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(op, " ")
			body := map[string]string{opMessage: later}[op]
			var answers []answer
			var counts []int
			for _, id := range []string{"req-8472", "req-none"} {
				b := &reads{broker: d.broker.Connect(roles.Gateway), subjects: make(chan string, 64)}
				_, h := d.handler(t.Context(), t, b)
				a := call(t, h, method, strings.Replace(path, "{id}", id, 1), otherKey, body, "Idempotency-Key", "k-1", deskapi.HeaderRequestID, "rq-1")
				close(b.subjects)
				n := 0
				for subj := range b.subjects {
					n++
					if subj != "VIEWS view.acme-in."+id {
						t.Errorf("%s: read %s", id, subj)
					}
				}
				answers, counts = append(answers, a), append(counts, n)
			}
			if a := answers[0]; a.status != http.StatusNotFound || a.body != answers[1].body || len(a.header) != len(answers[1].header) {
				t.Errorf("%d %s, unknown: %d %s", a.status, a.body, answers[1].status, answers[1].body)
			}
			// All the polls that fit into the wait, and one that may fall on its end.
			most := int(viewWait/viewPoll) + 1
			for i, n := range counts {
				if n < most/2 || n > most {
					t.Errorf("%d reads in answer %d, want about %d", n, i, most)
				}
			}
		})
	}
	if n := len(d.stored(t)); n != 0 {
		t.Errorf("%d messages stored", n)
	}
}
