package executor

import (
	"context"
	"errors"
	"log/slog"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// lookUp reads the order and records what that proves of the action's begun
// refunds. It moves no money, so neither a stop nor an expiry nor a cancel
// forbids it. The refusal is of what only a person can tell; other errors are
// those of reading and writing.
func (x *executor) lookUp(ctx context.Context, t *task, e entry, positions []ledger.Position) (after entry, refused, err error) {
	look, err := x.view(ctx, t, e)
	if err != nil {
		return e, nil, err
	}
	next, refused := ledger.WriteLookUp(e.EffectEntry, positions, look, x.now())
	if _, ok := errors.AsType[*ledger.Refusal](refused); refused != nil && !ok {
		return e, nil, refused
	}
	if next == nil {
		return e, refused, nil
	}
	if err := x.reached(ctx, LookedUp, t.key()); err != nil {
		return e, nil, err
	}
	after, err = x.saveEntry(ctx, e, next)
	if err != nil {
		return e, nil, err
	}
	return after, refused, nil
}

// view reads the whole order. The reading is dated by the broker's time of the
// task it is made for, which is before it on any clock, and the entry by the
// broker's time when it was stored: absence is proven by no clock of a process.
func (x *executor) view(ctx context.Context, t *task, e entry) (ledger.Look, error) {
	look := ledger.Look{At: t.at, StoredAt: e.stored, CallTimeout: x.provider.Promises().CallTimeout}
	var err error
	look.View, err = x.readOrder(ctx, t)
	return look, err
}

// recover answers for an action of which a refund was begun and which may not be
// sent, now or ever: by what the provider shows. What stays in doubt is answered with
// the reason why it could not be sent.
func (x *executor) recover(ctx context.Context, t *task, e entry, positions []ledger.Position, why error) (*amendsv1.EffectResult, error) {
	after, refused, err := x.lookUp(ctx, t, e, positions)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		why = refused
	}
	if after.seq == e.seq {
		return x.refuse(ctx, t, positions, why)
	}
	now, err := ledger.Positions(after.EffectEntry, t.action, t.sha)
	switch {
	case err != nil:
		return x.refuse(ctx, t, now, err)
	case settled(now):
		return x.conclude(ctx, t, now), nil
	case ledger.Doubt(now):
		return x.refuse(ctx, t, now, why)
	case ledger.Doubt(positions) && proven(now):
		return x.conclude(ctx, t, now), nil
	}
	return nil, errMoved // what is left was never begun, or may be begun again
}

// proven reports whether a refund was proven not to exist: the desk is told
// before it is begun again.
func proven(positions []ledger.Position) bool {
	for _, p := range positions {
		if p.Standing == ledger.Idle && p.Intent.GetOutcome().GetReason() == ledger.ReasonProvenAbsent {
			return true
		}
	}
	return false
}

// hold answers an action that may not go on while the stop is set. What is in
// doubt is looked up all the same.
func (x *executor) hold(ctx context.Context, t *task, e entry, positions []ledger.Position) (*amendsv1.EffectResult, error) {
	if ledger.Doubt(positions) {
		after, refused, err := x.lookUp(ctx, t, e, positions)
		switch {
		case lost(err):
			return nil, err
		case unreadable(err):
			x.log.Warn("refund in doubt not looked up", slog.String("case", t.env.GetCaseId()), slog.Any("error", err))
		case err != nil:
			return nil, err
		case refused != nil:
			x.log.Warn("refund in doubt is a person's matter", slog.String("case", t.env.GetCaseId()), slog.Any("error", refused))
		}
		if positions, err = ledger.Positions(after.EffectEntry, t.action, t.sha); err != nil {
			return x.refuse(ctx, t, positions, err)
		}
		if settled(positions) {
			return x.conclude(ctx, t, positions), nil
		}
	}
	res := ledger.Result(t.sha, positions)
	res.Class, res.Reason = amendsv1.EffectClass_EFFECT_CLASS_HELD, reasonStopped
	return res, nil
}

// unreadable reports whether the provider did not show the order.
func unreadable(err error) bool {
	return errors.Is(err, provider.ErrUnavailable) || errors.Is(err, provider.ErrUnauthorized) || errors.Is(err, provider.ErrRejected)
}
