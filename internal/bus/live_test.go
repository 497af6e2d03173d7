package bus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

func TestLiveShowsWhatTheStreamRepublished(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	gateway, orchestrator := b.Connect(roles.Gateway), b.Connect(roles.Orchestrator)
	type view struct{ subj, data string }
	got := make(chan view, 8)
	stop, err := gateway.Live(t.Context(), subject.LiveView("*", "*"), func(subj string, data []byte) {
		got <- view{subj, string(data)}
	})
	if err != nil {
		t.Fatal(err)
	}
	// Answers aimed at the live subject are not views.
	composer := b.Raw(roles.Composer)
	hostile := &nats.Msg{Subject: subject.Result("composer", tenant, "req-1"), Reply: subject.LiveView(tenant, "req-1"), Data: []byte("x")}
	if err := composer.PublishMsg(hostile); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Connect(roles.Composer).Publish(t.Context(), hostile.Subject, nil); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"1", "2"} {
		if _, err := orchestrator.Publish(t.Context(), subject.View(tenant, "req-1"), []byte(data)); err != nil {
			t.Fatal(err)
		}
		select {
		case v := <-got:
			if v != (view{subject.LiveView(tenant, "req-1"), data}) {
				t.Errorf("got %+v, want view %s", v, data)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no live view")
		}
	}
	// The stored one is the same.
	if v, err := gateway.LastDirect(t.Context(), roles.StreamViews, subject.View(tenant, "req-1")); err != nil || string(v.Data) != "2" {
		t.Errorf("stored view %q, %v", v.Data, err)
	}
	stop()
	if _, err := orchestrator.Publish(t.Context(), subject.View(tenant, "req-1"), []byte("3")); err != nil {
		t.Fatal(err)
	}
	select {
	case v := <-got:
		t.Errorf("after stop: %+v", v)
	default:
	}
}

func TestLiveIsForThoseWhoAreGrantedIt(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	_, err := b.Connect(roles.Composer).Live(t.Context(), subject.LiveView("*", "*"), func(string, []byte) {})
	if !errors.Is(err, bus.ErrDenied) {
		t.Errorf("the composer listens to views: %v, want ErrDenied", err)
	}
}
