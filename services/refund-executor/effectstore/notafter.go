package effectstore

import (
	"context"
	"fmt"
	"time"
)

type notAfterKey struct{}

type deadline struct {
	now func() time.Time
	at  time.Time
}

// NotAfter bounds the writes made with a context by a clock: what was decided
// at one moment must not be stored by a process that stood still since. A write
// that has not left by then never does, and gives ErrTooLate.
func NotAfter(ctx context.Context, now func() time.Time, at time.Time) context.Context {
	return context.WithValue(ctx, notAfterKey{}, deadline{now, at})
}

// inTime looks at the clock as late as can be.
func inTime(ctx context.Context) error {
	d, ok := ctx.Value(notAfterKey{}).(deadline)
	if ok && !d.now().Before(d.at) {
		return fmt.Errorf("%w: not after %s", ErrTooLate, d.at.Format(time.RFC3339))
	}
	return nil
}
