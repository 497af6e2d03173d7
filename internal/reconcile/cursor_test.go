package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/reconcile"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

// A cursor begins at a moment, goes on where it left off, and knows a stream
// that is not the one it came from.
func TestCursor(t *testing.T) {
	t.Parallel()
	b := bustest.Desk(t, bustest.Options{})
	c := b.Connect(roles.RefundExecutor)
	const stream = roles.StreamEffects
	every := subject.Effect("acme-in", "*")
	put := func(tenant string, n int) {
		if _, err := c.Publish(t.Context(), subject.Effect(tenant, fmt.Sprint(n)), []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	all := func(cur *reconcile.Cursor) (out []bus.Stored) {
		for {
			m, err := cur.Next(t.Context(), c, stream, every)
			if err != nil {
				return out
			}
			out = append(out, m)
		}
	}
	if cur, err := reconcile.Since(t.Context(), c, stream, every, time.Now()); err != nil || len(all(&cur)) != 0 {
		t.Errorf("an empty stream: %v", err)
	}
	for n := range 9 {
		put("acme-in", n)
		put("globex", n)
	}
	var whole reconcile.Cursor
	stored := all(&whole)
	if len(stored) != 9 {
		t.Fatalf("%d messages", len(stored))
	}
	for i, m := range stored {
		cur, err := reconcile.Since(t.Context(), c, stream, every, m.Time)
		if got := all(&cur); err != nil || len(got) != 9-i || got[0].Seq != m.Seq {
			t.Errorf("since message %d: %d messages, %v", i, len(got), err)
		}
	}
	late, err := reconcile.Since(t.Context(), c, stream, every, time.Now().Add(time.Hour))
	if err != nil || len(all(&late)) > 1 {
		t.Errorf("since later: %v", err)
	}
	if ok, err := whole.Holds(t.Context(), c, stream, every); err != nil || !ok {
		t.Errorf("the same stream: %v, %v", ok, err)
	}
	other := bustest.Desk(t, bustest.Options{}).Connect(roles.RefundExecutor)
	if ok, err := whole.Holds(t.Context(), other, stream, every); err != nil || ok {
		t.Errorf("a stream that lost all: %v, %v", ok, err)
	}
	for n := range 18 {
		if _, err := other.Publish(t.Context(), subject.Effect("acme-in", fmt.Sprint(n)), []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := whole.Holds(t.Context(), other, stream, every); err != nil || ok {
		t.Errorf("another stream of as many: %v, %v", ok, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := whole.Holds(gone, c, stream, every); err == nil {
		t.Error("a read that failed tells something")
	}
}
