package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// maxRaces bounds how often an entry is decided again.
const maxRaces = 8

var (
	errContended = errors.New("the effect entry kept moving on")
	// errMoved: something was settled on the way; decide again.
	errMoved = errors.New("the effect entry has moved on")
)

// act does what a task asks for, one task at a time for an order.
func (x *executor) act(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	if subject.ReservedOrder(t.order()) {
		return x.refuse(ctx, t, nil, ledger.Refuse(ledger.ReasonReservedOrder, "order id %q is reserved", t.order()))
	}
	unlock, err := x.locks.lock(ctx, t.tenant()+"/"+t.order())
	if err != nil {
		return nil, err
	}
	defer unlock()
	switch t.slice {
	case amendsv1.Slice_SLICE_CANCEL:
		return x.cancel(ctx, t)
	case amendsv1.Slice_SLICE_CONFIRM:
		return x.confirm(ctx, t)
	case amendsv1.Slice_SLICE_SETTLE:
		return x.settle(ctx, t)
	default:
		return x.execute(ctx, t)
	}
}

// execute makes the refunds of one action, or says why not.
func (x *executor) execute(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	e, res, err := x.begin(ctx, t)
	if err != nil || res != nil {
		return res, err
	}
	return x.perform(ctx, t, e)
}

// begin makes the action's intents durable, or gives the answer that needs no
// call. Nothing in this loop has an effect outside the executor's own records.
func (x *executor) begin(ctx context.Context, t *task) (entry, *amendsv1.EffectResult, error) {
	var began entry
	res, err := x.decide(ctx, t, func() (*amendsv1.EffectResult, error) {
		var res *amendsv1.EffectResult
		var err error
		began, res, err = x.tryBegin(ctx, t)
		return res, err
	})
	return began, res, err
}

// decide tries until no race is lost, each time from the leader's copy.
func (x *executor) decide(ctx context.Context, t *task, try func() (*amendsv1.EffectResult, error)) (*amendsv1.EffectResult, error) {
	for range maxRaces {
		res, err := try()
		switch {
		case errors.Is(err, errMoved), errors.Is(err, effectstore.ErrTooLate):
			continue
		case !lost(err):
			return res, err
		}
		x.metrics.races.Add(ctx, 1)
	}
	return nil, fmt.Errorf("order %s: %w", t.order(), errContended)
}

func (x *executor) tryBegin(ctx context.Context, t *task) (entry, *amendsv1.EffectResult, error) {
	e, stopped, clock, err := x.look(ctx, t)
	if err != nil {
		return entry{}, nil, err
	}
	positions, err := ledger.Positions(e.EffectEntry, t.action, t.sha)
	if err != nil {
		res, err := x.refuse(ctx, t, positions, err)
		return entry{}, res, err
	}
	if settled(positions) {
		return entry{}, x.conclude(ctx, t, positions), nil
	}
	if over := ledger.Over(positions, t.sha); over != nil {
		res, err := x.recover(ctx, t, e, positions, over)
		return entry{}, res, err
	}
	if stopped {
		res, err := x.hold(ctx, t, e, positions)
		return entry{}, res, err
	}
	// By a clock that is behind, what has expired would count.
	if behind := clock.Sub(x.now()); behind > ledger.ClockMargin {
		return entry{}, nil, fmt.Errorf("own clock is %s behind the broker's", behind)
	}
	// What is judged now counts for as long as a call may start: a process that
	// stands still before the write judges again.
	until := x.now().Add(x.cfg.CallWindow)
	next, err := x.authorise(ctx, t, e, positions, clock)
	if unknownToUs(err, positions) {
		res, err := x.recover(ctx, t, e, positions, err)
		return entry{}, res, err
	}
	if err != nil {
		res, err := x.refuse(ctx, t, positions, err)
		return entry{}, res, err
	}
	e, err = x.saveEntry(effectstore.NotAfter(ctx, x.now, until), e, next)
	e.until = until
	return e, nil, err
}

// look reads the stop switches and the order's entry at their leaders, and the
// broker's clock, at once.
func (x *executor) look(ctx context.Context, t *task) (e entry, stopped bool, clock time.Time, err error) {
	var loadErr, stopErr, clockErr error
	x.both(
		func() { e, loadErr = x.loadEntry(ctx, t.tenant(), t.order()) },
		func() {
			x.both(
				func() { stopped, stopErr = x.store.Stopped(ctx, t.tenant()) },
				func() { clock, clockErr = x.store.Time(ctx) },
			)
		},
	)
	return e, stopped, latest(clock, e.stored, t.at), errors.Join(loadErr, stopErr, clockErr)
}

// at is the moment something is judged by: the executor's clock, and never
// before what the broker's has shown.
func (x *executor) at(clock time.Time) time.Time { return latest(x.now(), clock) }

func latest(at ...time.Time) time.Time {
	return slices.MaxFunc(at, time.Time.Compare)
}

// unknownToUs reports whether a check said no to an action of which the provider
// may know more than the entry.
func unknownToUs(err error, positions []ledger.Position) bool {
	r, no := errors.AsType[*ledger.Refusal](err)
	return no && (ledger.Doubt(positions) || r.Reason == ledger.ReasonUnrecordedRefund)
}

func settled(positions []ledger.Position) bool {
	for _, p := range positions {
		if p.Open() {
			return false
		}
	}
	return true
}
