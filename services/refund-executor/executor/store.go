package executor

import (
	"context"
	"errors"
	"time"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
)

// entry is an effect entry as the store has it; nil when the order has none.
type entry struct {
	*amendsv1.EffectEntry
	seq uint64
	// stored is when it was, by the broker's clock; not known right after
	// a write.
	stored time.Time
	// until is when a call that was begun by its write must have started, on the
	// process's own clock.
	until time.Time
}

func (x *executor) loadEntry(ctx context.Context, tenant, order string) (entry, error) {
	e, seq, stored, err := x.store.Entry(ctx, tenant, order)
	return entry{EffectEntry: e, seq: seq, stored: stored}, err
}

// saveEntry writes the entry that follows from one that was loaded.
func (x *executor) saveEntry(ctx context.Context, after entry, e *amendsv1.EffectEntry) (entry, error) {
	seq, err := x.store.SaveEntry(x.writing(ctx, after.EffectEntry, e), e, after.seq)
	if err != nil {
		return entry{}, err
	}
	return entry{EffectEntry: e, seq: seq}, nil
}

// lost reports whether a write must be decided again from the leader's copy:
// somebody else was first, or nobody knows.
func lost(err error) bool {
	return errors.Is(err, effectstore.ErrConflict) || errors.Is(err, effectstore.ErrUncertain)
}
