package executor

import (
	"context"
	"fmt"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// cancel withdraws the keys of an action, or says what has begun. Whichever of
// cancel and execute writes to the order's entry first decides. A stop does
// not hold it: it moves no money.
func (x *executor) cancel(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	for range maxRaces {
		e, err := x.loadEntry(ctx, t.tenant(), t.order())
		if err != nil {
			return nil, err
		}
		next, err := ledger.WriteTombstones(e.EffectEntry, t.action, t.cancel, x.at(t))
		if err != nil {
			return x.refuse(ctx, t, nil, err)
		}
		if next != nil {
			switch e, err = x.saveEntry(ctx, e, next); {
			case lost(err):
				x.metrics.races.Add(ctx, 1)
				continue
			case err != nil:
				return nil, err
			}
		}
		positions, err := ledger.Positions(e.EffectEntry, t.action, t.sha)
		if err != nil {
			return x.refuse(ctx, t, nil, err) // NOT_BEGUN when withdrawn
		}
		return x.conclude(ctx, t, positions), nil
	}
	return nil, fmt.Errorf("order %s: %w", t.order(), errContended)
}
