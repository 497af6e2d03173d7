package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

// A desk in a time of its own reads every timestamp of the broker in it, and
// is woken in it.
func TestADeskMayLiveInItsOwnTime(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)
	clock := deskclock.New(start, time.Now)
	clock.Run()
	b := bustest.Desk(t, bustest.Options{Clock: clock})
	c := b.Connect(roles.Orchestrator)
	due := consumeDue(t, c)
	clock.AdvanceTo(start.Add(72 * time.Hour))
	within := func(what string, at time.Time) {
		t.Helper()
		if d := at.Sub(start.Add(72 * time.Hour)); d < 0 || d > time.Minute {
			t.Errorf("%s is at %s, %s after the leap", what, at, d)
		}
	}

	now, err := c.Time(t.Context(), roles.ConsumerDue)
	if err != nil {
		t.Fatal(err)
	}
	within("the broker's clock", now)
	if _, err := c.Time(t.Context(), roles.ConsumerReplies); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("by another service's consumer: %v", err)
	}

	armed := clock.Now().Add(300 * time.Millisecond)
	arm(t, c, "req-1", 1, armed)
	f := next(t, due)
	within("the delivery", f.at)
	if f.at.Before(armed) {
		t.Errorf("it came at %s, armed for %s", f.at, armed)
	}
	if _, err := c.Publish(t.Context(), subject.View(tenant, "req-1"), []byte("view")); err != nil {
		t.Fatal(err)
	}
	for what, read := range map[string]func(context.Context) (bus.Stored, error){
		"Last": func(ctx context.Context) (bus.Stored, error) {
			return c.Last(ctx, roles.StreamViews, subject.View(tenant, "req-1"))
		},
		"NextAfter": func(ctx context.Context) (bus.Stored, error) {
			return c.NextAfter(ctx, roles.StreamViews, subject.View(tenant, "*"), 0)
		},
	} {
		m, err := read(t.Context())
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		within(what, m.Time)
	}
	m, err := b.Connect(roles.Gateway).LastDirect(t.Context(), roles.StreamViews, subject.View(tenant, "req-1"))
	if err != nil {
		t.Fatal(err)
	}
	within("LastDirect", m.Time)
}
