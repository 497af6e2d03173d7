package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// linked gives the view of a case of a request.
func linked(request, caseID, state string) *amendsv1.CaseView {
	v := view(caseID, 3, state)
	v.RequestId = request
	return v
}

func TestRequestShowsAllItsCases(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.redis.Close() // it is not needed
	stranger := linked("req-8472", "req-8472-4", "RECEIVED")
	stranger.CustomerId = "cust_7001"
	for _, v := range []*amendsv1.CaseView{
		linked("req-8472", "req-8472", "VERIFIED_CLOSED"), linked("req-8472", "req-8472-2", "INVESTIGATING"),
		linked("req-8472-3", "req-8472-3", "RECEIVED"), // a case that only looks like one of it
		stranger, linked("req-8472", "req-8472-5", "VERIFIED_CLOSED"),
		linked("req-8472", "req-8472-7", "RECEIVED"), // not the sixth
		linked("req-1", "req-1", "VERIFIED_CLOSED"), linked("req-1", "req-1-2", "VERIFIED_CLOSED"),
	} {
		d.publish(t, v)
	}
	for id, want := range map[string]struct {
		cases  string
		closed bool
	}{"req-8472": {"req-8472 req-8472-2 req-8472-5", false}, "req-1": {"req-1 req-1-2", true}} {
		a := ask(t, http.MethodGet, url+"/v1/requests/"+id, webKey, "")
		var got deskapi.Request
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		var ids []string
		for _, c := range got.Cases {
			ids = append(ids, c.CaseID)
		}
		if got.RequestID != id || strings.Join(ids, " ") != want.cases || got.Closed != want.closed {
			t.Errorf("%s: cases %v, closed %t", id, ids, got.Closed)
		}
	}
}

func TestRequestHasBoundedlyManyCases(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	long := strings.Repeat("r", 62) // room for -2, not for -10
	for _, id := range []string{"req-1", long} {
		d.publish(t, linked(id, id, "RECEIVED"))
		for n := 2; n <= casework.MaxLinked+2; n++ {
			if caseID := casework.LinkedID(id, n); len(caseID) <= 64 {
				d.publish(t, linked(id, caseID, "RECEIVED"))
			}
		}
	}
	for id, want := range map[string]int{"req-1": casework.MaxLinked, long: 9} {
		a := ask(t, http.MethodGet, url+"/v1/requests/"+id, webKey, "")
		if n := strings.Count(a.body, `"timeline"`); a.status != http.StatusOK || n != want {
			t.Errorf("%s: %d with %d cases, want %d", id, a.status, n, want)
		}
	}
}

// TENANT-1: another's request is answered like one that does not exist, and like
// a case; one whose first case is a part of another is none.
func TestForeignRequestsAreAnsweredLikeUnknownOnesTENANT1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, linked("req-8472", "req-8472", "RECEIVED"))
	d.publish(t, linked("req-8472", "req-8472-2", "RECEIVED"))
	want := ask(t, http.MethodGet, url+"/v1/cases/req-none", webKey, "")
	for name, c := range map[string]struct{ key, id string }{
		"other customer": {otherKey, "req-8472"}, "other tenant": {betaKey, "req-8472"}, "unknown": {webKey, "req-none"}, "a part": {webKey, "req-8472-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, http.MethodGet, url+"/v1/requests/"+c.id, c.key, "")
			if a.status != http.StatusNotFound || a.body != want.body || len(a.header) != len(want.header) {
				t.Errorf("%d %s %v", a.status, a.body, a.header)
			}
		})
	}
}

// Right after a 202 the first view may not be written yet.
func TestRequestIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	got := make(chan answer, 1)
	go func() { got <- ask(t, http.MethodGet, url+"/v1/requests/req-8472", webKey, "") }()
	d.publish(t, linked("req-8472", "req-8472", "RECEIVED"))
	if a := <-got; a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}
