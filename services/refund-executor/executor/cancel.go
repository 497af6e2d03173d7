package executor

import (
	"context"
	"log/slog"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// cancel withdraws the keys of an action of which nothing was done, and says
// what has begun. Whichever of cancel and execute writes to the order's entry
// first decides. What was begun is looked up before, never sent: what is proven
// absent is withdrawn too, and what exists is told. A stop does not hold
// a cancel: it moves no money.
func (x *executor) cancel(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	return x.decide(ctx, t, func() (*amendsv1.EffectResult, error) { return x.tryCancel(ctx, t) })
}

func (x *executor) tryCancel(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	e, err := x.loadEntry(ctx, t.tenant(), t.order())
	if err != nil {
		return nil, err
	}
	var refused error
	if positions, err := ledger.Positions(e.EffectEntry, t.action, t.sha); err == nil && ledger.Unproven(positions) {
		var after entry
		switch after, refused, err = x.lookUp(ctx, t, e, positions); {
		case unreadable(err): // what the entry says is enough to withdraw
			x.log.Warn("refund that was begun not looked up", slog.String("case", t.env.GetCaseId()), slog.Any("error", err))
		case err != nil:
			return nil, err
		case after.seq != e.seq:
			return nil, errMoved
		}
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
	switch {
	case err != nil:
		return x.refuse(ctx, t, positions, err) // NOT_BEGUN when withdrawn
	case refused != nil:
		return x.refuse(ctx, t, positions, refused)
	}
	return x.conclude(ctx, t, positions), nil
}
