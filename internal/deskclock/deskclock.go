package deskclock

import (
	"sync"
	"time"
)

// Clock is a desk's own time.
type Clock struct {
	wall func() time.Time

	mu sync.RWMutex
	// spans are in order; each holds from its machine time up to the next one's.
	spans []span
}

// span is a stretch of the machine's time from a moment on. The desk's time is
// the machine's plus ahead; in one that stands still it is at throughout.
type span struct {
	from  time.Time
	ahead time.Duration
	still bool
	at    time.Time
}

// desk gives the desk's time at a moment of the span.
func (s span) desk(wall time.Time) time.Time {
	if s.still {
		return s.at
	}
	return wall.Add(s.ahead)
}

// New gives a clock that shows start now and stands still until Run. wall is
// the machine's clock.
func New(start time.Time, wall func() time.Time) *Clock {
	c := &Clock{wall: wall}
	at := c.machine()
	c.spans = []span{{from: at, ahead: start.Sub(at), still: true, at: start.UTC()}}
	return c
}

// machine reads the machine's clock without its monotonic part, which the
// broker's timestamps do not have either.
func (c *Clock) machine() time.Time { return c.wall().Round(0).UTC() }

// Now is the desk's time.
func (c *Clock) Now() time.Time { return c.FromBroker(c.machine()) }

// Run makes the clock go on from where it stands.
func (c *Clock) Run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.spans[len(c.spans)-1]; last.still {
		at := later(c.machine(), last.from)
		c.spans = append(c.spans, span{from: at, ahead: last.at.Sub(at)})
	}
}

// AdvanceTo moves the desk's time ahead to a moment, and makes the clock run. A
// moment that has passed changes nothing.
func (c *Clock) AdvanceTo(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.spans[len(c.spans)-1]
	at := later(c.machine(), last.from) // the machine's clock may have been set back
	if t.After(last.desk(at)) {
		c.spans = append(c.spans, span{from: at, ahead: t.Sub(at)})
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// FromBroker gives the desk's time of a moment on the machine's clock.
func (c *Clock) FromBroker(wall time.Time) time.Time {
	wall = wall.Round(0).UTC()
	return c.spanAt(wall).desk(wall)
}

// ToBroker gives the moment on the machine's clock at which the desk's time is,
// or for one that was leapt over has passed, t. While the clock stands still it
// is taken to go on at once, so what is asked for then may come early.
func (c *Clock) ToBroker(t time.Time) time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := len(c.spans) - 1; i > 0; i-- {
		s := c.spans[i]
		wall := t.Add(-s.ahead).Round(0).UTC()
		switch {
		case wall.After(s.from):
			return wall
		case !t.Before(c.spans[i-1].desk(s.from)):
			return s.from
		}
	}
	return t.Add(-c.spans[0].ahead).Round(0).UTC()
}

// Meant gives the desk's time a moment stood for when it was asked of the
// broker by a message stamped at stored: an advance since then has changed what
// the moment stands for.
func (c *Clock) Meant(moment, stored time.Time) time.Time {
	return moment.Add(c.spanAt(stored.Round(0)).ahead).UTC()
}

// spanAt gives the span that holds at a moment of the machine's clock.
func (c *Clock) spanAt(wall time.Time) span {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := len(c.spans) - 1; i > 0; i-- {
		if !wall.Before(c.spans[i].from) {
			return c.spans[i]
		}
	}
	return c.spans[0]
}
