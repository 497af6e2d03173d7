package executor

import (
	"context"
	"log/slog"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// cancel withdraws the keys of an action, or says what has begun. Whichever of
// cancel and execute writes to the order's entry first decides. What is in doubt
// is looked up, never sent: when it is proven absent its key is withdrawn too.
// A stop does not hold a cancel: it moves no money.
func (x *executor) cancel(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	return x.decide(ctx, t, func() (*amendsv1.EffectResult, error) { return x.tryCancel(ctx, t) })
}

func (x *executor) tryCancel(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	e, err := x.loadEntry(ctx, t.tenant(), t.order())
	if err != nil {
		return nil, err
	}
	next, err := ledger.WriteTombstones(e.EffectEntry, t.action, t.cancel, x.at(t.at))
	if err != nil {
		return x.refuse(ctx, t, nil, err)
	}
	if next != nil {
		if e, err = x.saveEntry(ctx, e, next); err != nil {
			return nil, err
		}
		if err := x.reached(ctx, TombstoneDurable, t.key()); err != nil {
			return nil, err
		}
	}
	positions, err := ledger.Positions(e.EffectEntry, t.action, t.sha)
	if err != nil {
		return x.refuse(ctx, t, nil, err) // NOT_BEGUN when withdrawn
	}
	if !ledger.Doubt(positions) {
		return x.conclude(ctx, t, positions), nil
	}
	after, refused, err := x.lookUp(ctx, t, e, positions)
	switch {
	case unreadable(err):
		x.log.Warn("refund in doubt not looked up", slog.String("case", t.env.GetCaseId()), slog.Any("error", err))
		return x.conclude(ctx, t, positions), nil
	case err != nil:
		return nil, err
	case after.seq != e.seq:
		return nil, errMoved
	case refused != nil:
		return x.refuse(ctx, t, positions, refused)
	}
	return x.conclude(ctx, t, positions), nil
}
