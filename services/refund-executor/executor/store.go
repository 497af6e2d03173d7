package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var wire = proto.MarshalOptions{Deterministic: true}

// entry is an effect entry as the stream's leader has it; nil when the order
// has none.
type entry struct {
	*amendsv1.EffectEntry
	seq uint64
}

func (x *executor) loadEntry(ctx context.Context, tenant, order string) (entry, error) {
	e := new(amendsv1.EffectEntry)
	seq, err := x.load(ctx, subject.Effect(tenant, order), e)
	if err != nil || seq == 0 {
		return entry{}, err
	}
	if e.GetTenant() != tenant || e.GetOrderId() != order {
		return entry{}, fmt.Errorf("effect entry of order %s names another order", order)
	}
	return entry{e, seq}, nil
}

// saveEntry writes the entry that follows from one that was loaded.
func (x *executor) saveEntry(ctx context.Context, after entry, e *amendsv1.EffectEntry) (entry, error) {
	seq, err := x.save(ctx, subject.Effect(e.GetTenant(), e.GetOrderId()), e, after.seq)
	if err != nil {
		return entry{}, err
	}
	return entry{e, seq}, nil
}

// load reads the newest message of a subject of EFFECTS; 0 when there is none.
func (x *executor) load(ctx context.Context, subj string, into proto.Message) (uint64, error) {
	m, err := x.bus.Last(ctx, roles.StreamEffects, subj)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	if err := proto.Unmarshal(m.Data, into); err != nil {
		return 0, fmt.Errorf("decode %s: %w", subj, err)
	}
	return m.Seq, nil
}

// save writes by compare-and-set.
func (x *executor) save(ctx context.Context, subj string, m proto.Message, expect uint64) (uint64, error) {
	if err := envelope.Validate(m); err != nil {
		return 0, fmt.Errorf("write %s: %w", subj, err)
	}
	data, err := wire.Marshal(m)
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", subj, err)
	}
	return x.bus.Publish(ctx, subj, data, bus.ExpectLast(expect))
}

// lost reports whether a write must be decided again from the leader's copy:
// somebody else was first, or nobody knows.
func lost(err error) bool { return errors.Is(err, bus.ErrConflict) || errors.Is(err, bus.ErrUncertain) }

// stopped reads both stop switches at the leader. One that is there and cannot
// be read is a stop.
func (x *executor) stopped(ctx context.Context, tenant string) (bool, error) {
	switch _, err := x.bus.NextAfter(ctx, roles.StreamControl, subject.Control("*"), 0); {
	case errors.Is(err, bus.ErrNotFound):
		return false, nil // nobody ever touched a switch: one look instead of two
	case err != nil:
		return false, fmt.Errorf("read the stop switches: %w", err)
	}
	var all, own bool
	var allErr, ownErr error
	var wg sync.WaitGroup
	wg.Go(func() { all, allErr = x.stop(ctx, subject.StopAll) })
	own, ownErr = x.stop(ctx, tenant)
	wg.Wait()
	if all || own {
		return true, nil
	}
	return false, errors.Join(allErr, ownErr)
}

func (x *executor) stop(ctx context.Context, scope string) (bool, error) {
	m, err := x.bus.Last(ctx, roles.StreamControl, subject.Control(scope))
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the stop switch: %w", err)
	}
	s := new(amendsv1.StopSwitch)
	if err := proto.Unmarshal(m.Data, s); err != nil || s.GetScope() != scope {
		return true, nil
	}
	return s.GetStopped(), nil
}
