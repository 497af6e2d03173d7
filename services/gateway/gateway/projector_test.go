package gateway

import (
	"context"
	"net/http"
	"strings"
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

// resets counts how often the views are taken from the beginning.
type resets struct {
	broker
	done chan struct{}
}

func (r *resets) ResetConsumer(ctx context.Context, consumer string, seq uint64) error {
	err := r.broker.ResetConsumer(ctx, consumer, seq)
	r.done <- struct{}{}
	return err
}

// A server that was started anew may have lost its last writes though it kept
// the marker: the views come again, and lists are served meanwhile.
func TestRestartedRedisGetsTheViewsAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := &resets{broker: d.broker.Connect(roles.Gateway), done: make(chan struct{}, 8)}
	client := d.client(t)
	model := readmodel.New(client, modelPrefix)
	g, _ := d.handler(t.Context(), t, b)
	readyModel(t, g)
	marker, err := model.Marker(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// As if the model had been finished on another run of the server.
	if ok, err := model.Renew(t.Context(), marker, "before"); err != nil || !ok {
		t.Fatalf("%t, %v", ok, err)
	}
	d.publish(t, numbered(1, 1, "RECEIVED"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.projection.run(ctx)
	}()
	<-b.done
	bustest.Await(t, "the view, and a marker of this run", func() bool {
		page, err := model.ByCustomer(ctx, "acme-in", "cust_5519", readmodel.Query{Limit: 10})
		if err != nil {
			t.Errorf("while the views come again: %v", err)
		}
		marker, _ := model.Marker(ctx)
		return len(page.Entries) == 1 && marker.Ready() && marker.Server() == ""
	})
	cancel()
	<-ended
	if len(b.done) != 0 {
		t.Error("rewound more than once")
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
