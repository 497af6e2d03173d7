package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// An emptied Redis is noticed, lists are refused meanwhile and never short, and
// the model is built again from the stored views.
func TestEmptiedRedisIsFilledAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	urls := []string{d.gateway(t), d.gateway(t)}
	for n := 1; n <= 3; n++ {
		d.publish(t, numbered(n, 1, "RECEIVED"))
	}
	awaitList(t, urls[0], webKey, "", "3 2 1")
	for range 3 {
		d.redis.FlushAll()
		bustest.Await(t, "the list again", func() bool {
			list, a := cases(t, urls[1], webKey, "")
			switch {
			case a.status == http.StatusOK && idsOf(list) == "3 2 1":
				return true
			case a.status == http.StatusServiceUnavailable:
				if p := a.problem(t); p.Code != deskapi.CodeListUnavailable || a.header.Get("Retry-After") == "" {
					t.Errorf("%+v %v", p, a.header)
				}
				return false
			}
			t.Errorf("a list that is not complete: %d %s", a.status, a.body)
			return true
		})
	}
}

// What happens while Redis is away is in the lists when it is back, and other
// requests go on meanwhile.
func TestNothingIsLostWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	d.publish(t, numbered(1, 1, "RECEIVED"))
	awaitList(t, url, webKey, "", "1")
	d.redis.Close()
	for n := 2; n <= 40; n++ {
		d.publish(t, numbered(n, 1, "RECEIVED"))
	}
	d.publish(t, numbered(1, 2, "INVESTIGATING"))
	if _, a := cases(t, url, webKey, ""); a.status != http.StatusServiceUnavailable || a.problem(t).Code != deskapi.CodeListUnavailable {
		t.Errorf("without Redis: %d %s", a.status, a.body)
	}
	if a := ask(t, http.MethodGet, url+"/v1/cases/req-40", webKey, ""); a.status != http.StatusOK {
		t.Errorf("a case without Redis: %d", a.status)
	}
	if err := d.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	bustest.Await(t, "all that happened", func() bool {
		list, _ := cases(t, url, webKey, "?limit=100")
		return len(list.Cases) == 40 && list.Cases[39].Version == 2
	})
	if dead := stored(t, d, roles.StreamDeadLetters); dead != 0 {
		t.Errorf("%d dead letters", dead)
	}
}

func stored(t *testing.T, d *desk, stream string) uint64 {
	t.Helper()
	s, err := d.broker.Admin().Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// A server that was started anew may have lost its last writes though it kept
// the marker, and what was acknowledged does not come again by the consumer: the
// stored views are put again.
func TestRestartedRedisGetsTheViewsAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.publish(t, numbered(1, 1, "RECEIVED"))
	g, _ := d.handler(t.Context(), t, d.broker.Connect(roles.Gateway))
	project := func(until func() bool) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { g.projection.run(ctx) })
		bustest.Await(t, "the view", until)
		cancel()
		running.Wait()
	}
	listed := func() bool {
		page, err := g.model.ByCustomer(t.Context(), "acme-in", "cust_5519", readmodel.Query{Limit: 10})
		return err == nil && len(page.Entries) == 1
	}
	project(func() bool { return listed() && g.projection.waiting.Load() == 0 })
	d.redis.FlushAll()
	_, err := g.model.Claim(t.Context(), "", "t")
	ok, err2 := g.model.Finish(t.Context(), "t", "before")
	if err := errors.Join(err, err2); err != nil || !ok || listed() {
		t.Fatalf("%t, %v", ok, err)
	}
	project(listed)
	if marker, err := g.model.Marker(t.Context()); err != nil || !marker.Ready() || marker.Server() != "" {
		t.Errorf("marker %q, %v", marker, err)
	}
}

// What is no view, or the view of another case, is put aside and holds nothing
// up.
func TestUnusableViewsAreDeadLetters(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	url := d.gateway(t)
	liar, err := proto.Marshal(numbered(7, 1, "RECEIVED"))
	if err != nil {
		t.Fatal(err)
	}
	for id, data := range map[string][]byte{"req-8": liar, "req-9": []byte("\xff")} {
		if _, err := d.writes.Publish(t.Context(), subject.View("acme-in", id), data); err != nil {
			t.Fatal(err)
		}
	}
	d.publish(t, numbered(1, 1, "RECEIVED"))
	awaitList(t, url, webKey, "", "1")
	bustest.Await(t, "two dead letters", func() bool { return stored(t, d, roles.StreamDeadLetters) == 2 })
}

func TestEntryOfAViewIsCheckedB55(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"8472.>", "*", "a b", "", strings.Repeat("8", 300)} {
		for i, change := range []func(*amendsv1.CaseView){
			func(v *amendsv1.CaseView) { v.Tenant = bad },
			func(v *amendsv1.CaseView) { v.CaseId = bad },
			func(v *amendsv1.CaseView) { v.CustomerId = bad },
		} {
			v := numbered(1, 1, "RECEIVED")
			change(v)
			if _, err := entryOf(subject.View("acme-in", "req-1"), mustMarshal(t, v)); err == nil {
				t.Errorf("field %d as %q was taken", i, bad)
			}
		}
	}
}
