package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amends-dev/amends/internal/bus"
)

// Reader reads a stream at its leader.
type Reader interface {
	Last(ctx context.Context, stream, subj string) (bus.Stored, error)
	NextAfter(ctx context.Context, stream, filter string, seq uint64) (bus.Stored, error)
}

// Cursor is how far the messages of a stream that match a filter were taken in.
// The zero value is the start.
type Cursor struct {
	seq uint64
	// at is the time of the message at seq, zero when it was not taken in.
	at time.Time
}

// Since gives a cursor before the first message that is not older than t.
func Since(ctx context.Context, r Reader, stream, filter string, t time.Time) (Cursor, error) {
	newest, err := r.Last(ctx, stream, filter)
	if errors.Is(err, bus.ErrNotFound) {
		return Cursor{}, nil
	}
	if err != nil {
		return Cursor{}, fmt.Errorf("find the first of %s since %s: %w", stream, t.Format(time.RFC3339), err)
	}
	before, from := uint64(0), newest.Seq // it is after the one and not after the other
	for before+1 < from {
		middle := before + (from-before)/2
		m, err := r.NextAfter(ctx, stream, filter, middle-1)
		if err != nil {
			return Cursor{}, fmt.Errorf("find the first of %s since %s: %w", stream, t.Format(time.RFC3339), err)
		}
		if m.Time.Before(t) {
			before = m.Seq
		} else {
			from = middle
		}
	}
	return Cursor{seq: from - 1}, nil
}

// Next gives the message after the cursor, and moves it there.
func (c *Cursor) Next(ctx context.Context, r Reader, stream, filter string) (bus.Stored, error) {
	m, err := r.NextAfter(ctx, stream, filter, c.seq)
	if err == nil {
		c.seq, c.at = m.Seq, m.Time
	}
	return m, err
}

// Holds reports whether the stream still has the message that was taken in last
// where it was. If not it lost some, or is another: whoever kept what it took in
// begins anew.
func (c *Cursor) Holds(ctx context.Context, r Reader, stream, filter string) (bool, error) {
	if c.at.IsZero() {
		return c.seq == 0, nil
	}
	m, err := r.NextAfter(ctx, stream, filter, c.seq-1)
	if errors.Is(err, bus.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look where %s was left: %w", stream, err)
	}
	return m.Seq == c.seq && m.Time.Equal(c.at), nil
}
