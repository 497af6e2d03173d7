package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func TestViewShowsWhatCustomersMaySee(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	v := view("req-8472", 9, "VERIFIED_CLOSED")
	v.OrderId, v.Next, v.NextAt = "8472", "reply", timestamppb.New(openedAt.Add(time.Hour))
	v.Messages = []*amendsv1.ViewMessage{{MessageId: "m-of-the-view", BodySha256: hashOf("a message")}}
	v.Replies = []*amendsv1.ViewReply{{Kind: "refunded", Text: "₹2,000 <b>rf_5521</b>", SentAt: v.GetUpdatedAt(), Version: 9}}
	d.publish(t, v)
	a := ask(t, http.MethodGet, url+"/v1/cases/req-8472", webKey, "")
	var got deskapi.View
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if got.CaseID != "req-8472" || got.Version != 9 || got.State != "VERIFIED_CLOSED" || !got.Closed || got.OrderID != "8472" ||
		len(got.Timeline) != 9 || got.Replies[0].Text != "₹2,000 <b>rf_5521</b>" || !got.OpenedAt.Equal(openedAt) || got.Next != "reply" || got.TraceID != v.GetTraceId() {
		t.Errorf("view %+v", got)
	}
	for _, secret := range []string{v.GetBodySha256(), "body_sha256", "m-of-the-view", hashOf("a message"), "cust_5519", "acme-in"} {
		if strings.Contains(a.body, secret) {
			t.Errorf("the view shows %q", secret)
		}
	}
	if tag := a.header.Get("ETag"); tag != `"9"` {
		t.Errorf("ETag %s", tag)
	}
	if a := ask(t, http.MethodGet, url+"/v1/cases/req-8472", webKey, "", "If-None-Match", `"9"`); a.status != http.StatusNotModified || a.body != "" {
		t.Errorf("not modified: %d %q", a.status, a.body)
	}
	if a := ask(t, http.MethodGet, url+"/v1/cases/req-8472", webKey, "", "If-None-Match", `"8"`); a.status != http.StatusOK {
		t.Errorf("modified: %d", a.status)
	}
}

// TENANT-1: a case of another customer or tenant is answered like one that does
// not exist, in bytes and in time.
func TestForeignCasesAreAnsweredLikeUnknownOnesTENANT1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, view("req-8472", 5, "AWAITING_APPROVAL"))
	paths := []string{"/v1/cases/req-8472", "/v1/cases/req-8472/events", "/v1/cases/req-none", "/v1/cases/req-none/events"}
	type asked struct {
		what string
		answer
		took time.Duration
	}
	var answers []asked
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, key := range []string{otherKey, betaKey} {
		for _, path := range paths {
			all.Go(func() {
				start := time.Now()
				a := ask(t, http.MethodGet, url+path, key, "")
				mu.Lock()
				defer mu.Unlock()
				answers = append(answers, asked{key + " " + path, a, time.Since(start)})
			})
		}
	}
	all.Wait()
	for _, a := range answers {
		if a.status != http.StatusNotFound || a.body != answers[0].body || len(a.header) != len(answers[0].header) {
			t.Errorf("%s: %d %s %v", a.what, a.status, a.body, a.header)
		}
		if a.took < viewWait {
			t.Errorf("%s was answered after %s, before an unknown case is", a.what, a.took)
		}
	}
	if a := ask(t, http.MethodGet, url+"/v1/cases/req-8472", webKey, ""); a.status != http.StatusOK {
		t.Errorf("its own customer: %d", a.status)
	}
}

// Right after a 202 the view may not be written yet.
func TestViewIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	got := make(chan answer, 1)
	go func() { got <- ask(t, http.MethodGet, url+"/v1/cases/req-8472", webKey, "") }()
	d.publish(t, view("req-8472", 1, "RECEIVED"))
	if a := <-got; a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestSlowReaderIsDroppedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := newViews(d.writes, quiet())
	slow, stopSlow := v.watch("acme-in", "req-8472")
	defer stopSlow()
	fast, stopFast := v.watch("acme-in", "req-8472")
	defer stopFast()
	other, stopOther := v.watch("acme-in", "req-8473")
	defer stopOther()
	for i := uint64(1); i <= watchBuffer+1; i++ {
		v.receive("live.view.acme-in.req-8472", mustMarshal(t, view("req-8472", i, "INVESTIGATING")))
		if s := <-fast.live; s.view.GetVersion() != i {
			t.Fatalf("version %d, want %d", s.view.GetVersion(), i)
		}
	}
	for range watchBuffer {
		if _, ok := <-slow.live; !ok {
			t.Fatal("the slow reader lost what was buffered")
		}
	}
	if _, ok := <-slow.live; ok {
		t.Error("the slow reader was not dropped")
	}
	if len(other.live) != 0 {
		t.Error("a view went to a reader of another case")
	}
	stopSlow()
	stopFast()
	stopOther()
	if len(v.readers) != 0 {
		t.Errorf("readers left: %v", v.readers)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	for _, c := range []struct {
		method, path, allow string
		status              int
	}{
		{http.MethodGet, "/", "", 404},
		{http.MethodGet, "/v1/other", "", 404},
		{http.MethodDelete, "/v1/cases", "GET, HEAD, POST", 405},
		{http.MethodGet, "/v1/cases/req-1/cancel", "POST", 405},
		{http.MethodPost, "/v1/requests/req-1", "GET, HEAD", 405},
		{http.MethodDelete, "/v1/cases/req-1", "GET, HEAD", 405},
		{http.MethodPost, "/v1/cases/req-1/events", "GET, HEAD", 405},
	} {
		a := ask(t, c.method, url+c.path, webKey, "")
		a.problem(t)
		if a.status != c.status || a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q", c.method, c.path, a.status, a.header.Get("Allow"))
		}
	}
	bustest.Await(t, "B55: an id that is no token is unknown", func() bool {
		return ask(t, http.MethodGet, url+"/v1/cases/8472.%3E", webKey, "").status == http.StatusNotFound
	})
}
