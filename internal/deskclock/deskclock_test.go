package deskclock_test

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/deskclock"
)

var (
	machine = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	start   = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)
)

// hand is a machine clock set by hand.
type hand struct {
	mu sync.Mutex
	at time.Time
}

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

func TestClock(t *testing.T) {
	t.Parallel()
	h := &hand{at: machine}
	c := deskclock.New(start, h.now)
	same := func(what string, got, want time.Time) {
		t.Helper()
		if !got.Equal(want) {
			t.Errorf("%s is %s, want %s", what, got.Format(time.RFC3339Nano), want.Format(time.RFC3339Nano))
		}
	}
	h.pass(-time.Hour)
	same("before the beginning", c.Now(), start)
	h.pass(time.Hour + 5*time.Second)
	same("still", c.Now(), start)
	same("a wake-up asked for meanwhile", c.ToBroker(start.Add(time.Minute)), machine.Add(time.Minute))
	c.Run()
	c.Run()
	same("the beginning", c.Now(), start)
	machine := machine.Add(5 * time.Second)
	h.pass(time.Second)
	same("a second later", c.Now(), start.Add(time.Second))
	same("a wake-up", c.ToBroker(start.Add(30*time.Minute)), machine.Add(30*time.Minute))
	stored := h.now()

	h.pass(time.Second)
	leap := h.now()
	c.AdvanceTo(start.Add(31 * time.Minute))
	same("after the leap", c.Now(), start.Add(31*time.Minute))
	same("a message from before the leap", c.FromBroker(stored), start.Add(time.Second))
	same("a wake-up leapt over", c.ToBroker(start.Add(30*time.Minute)), leap)
	same("a wake-up to come", c.ToBroker(start.Add(time.Hour)), leap.Add(29*time.Minute))
	same("a wake-up in the past", c.ToBroker(start.Add(500*time.Millisecond)), machine.Add(500*time.Millisecond))
	same("what an armed wake-up meant", c.Meant(machine.Add(30*time.Minute), stored), start.Add(30*time.Minute))

	c.AdvanceTo(start)
	same("a leap backwards", c.Now(), start.Add(31*time.Minute))
	h.pass(time.Minute)
	same("it runs on", c.Now(), start.Add(32*time.Minute))
}

// Whatever passes and leaps: time is monotone, a message keeps its time, and
// what is asked for at a moment comes then or at the end of the leap over it.
func TestClockProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := &hand{at: machine}
		c := deskclock.New(start, h.now)
		if rapid.Bool().Draw(t, "run") {
			c.Run()
		}
		type stamp struct{ wall, desk time.Time }
		var stamps []stamp
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			h.pass(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "pass")))
			if rapid.Bool().Draw(t, "leap") {
				c.AdvanceTo(c.Now().Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(72*time.Hour)).Draw(t, "by"))))
			}
			stamps = append(stamps, stamp{h.now(), c.Now()})
		}
		for i, s := range stamps {
			if got := c.FromBroker(s.wall); got.Before(s.desk) || i+1 < len(stamps) && stamps[i+1].wall.After(s.wall) && !got.Equal(s.desk) {
				// Several leaps may share one moment of the machine's clock.
				t.Fatalf("message %d was stamped %s and reads %s", i, s.desk, got)
			}
			if i > 0 && s.desk.Before(stamps[i-1].desk) {
				t.Fatalf("time ran backwards at %d", i)
			}
			if back := c.FromBroker(c.ToBroker(s.desk)); back.Before(s.desk) {
				t.Fatalf("asked for at %s, comes early at %s", s.desk, back)
			}
		}
	})
}

func TestClockIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	c := deskclock.New(start, time.Now)
	c.Run()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			last := start
			for range 500 {
				c.AdvanceTo(c.Now().Add(time.Millisecond))
				now := c.Now()
				if now.Before(last) {
					t.Errorf("%s after %s", now, last)
				}
				last = now
				c.ToBroker(now)
			}
		})
	}
	wg.Wait()
}
