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

// span is a stretch in which the desk's time is the machine's plus ahead.
type span struct {
	from  time.Time
	ahead time.Duration
}

// New gives a clock that shows start now. wall is the machine's clock.
func New(start time.Time, wall func() time.Time) *Clock {
	c := &Clock{wall: wall}
	at := c.machine()
	c.spans = []span{{from: at, ahead: start.Sub(at)}}
	return c
}

// machine reads the machine's clock without its monotonic part, which the
// broker's timestamps do not have either.
func (c *Clock) machine() time.Time { return c.wall().Round(0).UTC() }

// Now is the desk's time.
func (c *Clock) Now() time.Time { return c.FromBroker(c.machine()) }

// AdvanceTo moves the desk's time ahead to a moment. A moment that has passed
// changes nothing.
func (c *Clock) AdvanceTo(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.machine()
	if last := c.spans[len(c.spans)-1]; at.Before(last.from) {
		at = last.from // the machine's clock was set back
	}
	ahead := t.Sub(at)
	if ahead > c.spans[len(c.spans)-1].ahead {
		c.spans = append(c.spans, span{from: at, ahead: ahead})
	}
}

// FromBroker gives the desk's time of a moment on the machine's clock.
func (c *Clock) FromBroker(wall time.Time) time.Time {
	wall = wall.Round(0).UTC()
	return wall.Add(c.spanAt(wall).ahead)
}

// ToBroker gives the moment on the machine's clock at which the desk's time is,
// or for one that was leapt over has passed, t.
func (c *Clock) ToBroker(t time.Time) time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := len(c.spans) - 1; i >= 0; i-- {
		wall := t.Add(-c.spans[i].ahead).Round(0).UTC()
		switch {
		case i == 0, wall.After(c.spans[i].from):
			return wall
		case !t.Before(c.spans[i].from.Add(c.spans[i-1].ahead)):
			return c.spans[i].from
		}
	}
	return t
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
