package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/roles"
)

// LOSS-1: what piles up past the limit is refused and says so; started cases go
// on; when the desk has caught up posts are taken again, and every post that was
// taken is one case.
func TestPostsAreRefusedWhileTheDeskIsBehindLOSS1(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gatewayWith(t, func(c *Config) { c.Limits.CasesInFlight = 5 })
	d.publish(t, view("req-8472", 5, "AWAITING_CUSTOMER"))
	taken := map[string]bool{}
	send := func(n int) answer {
		a := ask(t, http.MethodPost, url+"/v1/cases", webKey, founding, "Idempotency-Key", fmt.Sprint("k-", n))
		var got deskapi.Accepted
		if a.status == http.StatusAccepted {
			if err := json.Unmarshal([]byte(a.body), &got); err != nil {
				t.Fatal(err)
			}
			taken[got.CaseID] = true
		}
		return a
	}
	for n := range 5 {
		if a := send(n); a.status != http.StatusAccepted {
			t.Fatalf("post %d: %d %s", n, a.status, a.body)
		}
	}
	for n := 5; n < 20; n++ {
		a := send(n)
		if p := a.problem(t); a.status != http.StatusServiceUnavailable || p.Code != deskapi.CodeOverloaded || a.header.Get("Retry-After") == "" {
			t.Fatalf("post %d: %d %s", n, a.status, a.body)
		}
	}
	// A message is stored, and its case has yet to meet it.
	for path, want := range map[string]int{"/messages": http.StatusServiceUnavailable, "/cancel": http.StatusAccepted} {
		if a := ask(t, http.MethodPost, url+"/v1/cases/req-8472"+path, webKey, map[string]string{"/messages": later}[path], "Idempotency-Key", "k"); a.status != want || want != http.StatusAccepted && a.problem(t).Code != deskapi.CodeNotConfirmed {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := ask(t, http.MethodGet, url+"/v1/cases/req-8472", webKey, ""); a.status != http.StatusOK {
		t.Errorf("a read: %d", a.status)
	}
	d.recordPosts(t)
	bustest.Await(t, "the message is met", func() bool {
		return ask(t, http.MethodPost, url+"/v1/cases/req-8472/messages", webKey, later, "Idempotency-Key", "k").status == http.StatusAccepted
	})
	for n := 5; n < 20; n++ { // the same requests again, as a channel does
		bustest.Await(t, "room again", func() bool { return send(n).status == http.StatusAccepted })
	}
	posts := map[string]int{}
	for _, env := range d.stored(t) {
		if env.GetType() == "case.opened" {
			posts[env.GetCaseId()]++
		}
	}
	for id := range taken {
		if posts[id] != 1 {
			t.Errorf("case %s was opened %d times", id, posts[id])
		}
	}
	if len(taken) != 20 || len(posts) != 20 {
		t.Errorf("%d cases answered, %d stored", len(taken), len(posts))
	}
}

// A repeat of a post whose case is begun gets its answer even then; another
// request under its key is told so.
func TestRepeatsAreAnsweredWhileTheDeskIsBehind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	m, deps := newMeter()
	g, h := d.handlerWith(t.Context(), t, d.broker.Connect(roles.Gateway), deps, func(*Config) {})
	first := postAs(t, h, webKey, "", 1)
	var got deskapi.Accepted
	if err := json.Unmarshal([]byte(first.body), &got); err != nil || first.status != http.StatusAccepted {
		t.Fatalf("%d %s", first.status, first.body)
	}
	g.pressure.load, g.pressure.read = g.pressure.limit, time.Now().Add(time.Hour)
	if a := postAs(t, h, webKey, "", 1); a.status != http.StatusServiceUnavailable || a.problem(t).Code != deskapi.CodeOverloaded {
		t.Errorf("before its case is begun: %d %s", a.status, a.body)
	}
	v := view(got.CaseID, 1, "RECEIVED")
	v.BodySha256 = requestOf(t, founding)
	d.publish(t, v)
	bustest.Await(t, "the answer", func() bool { return postAs(t, h, webKey, "", 1).body == first.body })
	a := call(t, h, http.MethodPost, "/v1/cases", webKey, `{"message":"another"}`, "Idempotency-Key", "k--1")
	if a.status != http.StatusConflict || a.problem(t).Code != deskapi.CodeKeyReused {
		t.Errorf("another body: %d %s", a.status, a.body)
	}
	if n := m.count(t, "amends_gateway_posts_total", attribute.String("outcome", "overloaded")); n < 1 {
		t.Errorf("%d refusals counted", n)
	}
}

// backlogs is a broker whose backlogs are the test's.
type backlogs struct {
	broker
	each uint64
	err  error
}

func (b *backlogs) Backlog(context.Context, string) (bus.Backlog, error) {
	return bus.Backlog{Waiting: b.each, Open: b.each}, b.err
}

func TestPressure(t *testing.T) {
	t.Parallel()
	at := time.Now()
	b := &backlogs{each: 1}
	p := &pressure{bus: b, consumers: []string{"a", "b"}, limit: 6, now: func() time.Time { return at }, log: quiet()}
	look := func() {
		t.Helper()
		if err := p.look(t.Context()); (err != nil) != (b.err != nil) {
			t.Fatal(err)
		}
	}
	expect := func(when string, want bool) {
		t.Helper()
		if p.high() != want {
			t.Errorf("%s: high %t, with %d and %d since", when, !want, p.load, p.taken)
		}
	}
	p.taken = 100
	expect("before anything is known", false)
	look() // 4; what was taken before is in it
	expect("below the limit", false)
	p.took()
	expect("one taken since", false)
	p.took()
	expect("as many as there is room for", true)
	look()
	expect("counted in the next reading", false)
	b.each = 2
	look() // 8
	expect("over the limit", true)
	b.err = bus.ErrUnavailable
	look()
	at = at.Add(pressureKept)
	expect("while the last reading counts", true)
	at = at.Add(time.Second)
	expect("when it is too old", false)
	b.err, b.each = nil, 0
	look()
	expect("caught up", false)
}
