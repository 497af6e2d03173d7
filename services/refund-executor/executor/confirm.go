package executor

import (
	"context"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// confirm says what became of an action's refunds: the order is read again and
// what it shows is recorded. What made the desk ask is a hint and is believed
// nothing. A refund that was begun and that the reading shows is thereby found,
// also when it was thought that nothing had been done.
func (x *executor) confirm(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	return x.decide(ctx, t, func() (*amendsv1.EffectResult, error) {
		e, positions, err := x.known(ctx, t)
		if err != nil {
			return x.refuse(ctx, t, positions, undecided(err))
		}
		if ledger.Unproven(positions) {
			after, _, err := x.lookUp(ctx, t, e, positions)
			if err != nil {
				return nil, err
			}
			if after.seq != e.seq {
				return nil, errMoved
			}
		}
		look, err := x.view(ctx, t, e)
		if err != nil {
			return nil, err
		}
		next, err := ledger.Observe(e.EffectEntry, look.View, t.events, x.now())
		if err != nil {
			return x.refuse(ctx, t, positions, undecided(err))
		}
		if next != nil {
			if e, err = x.saveEntry(ctx, e, next); err != nil {
				return nil, err
			}
			if positions, err = ledger.Positions(e.EffectEntry, t.action, t.sha); err != nil {
				return x.refuse(ctx, t, positions, undecided(err))
			}
		}
		return x.compared(ctx, t, positions, shown(look.View)), nil
	})
}

// known gives the entry of an action of which something was begun.
func (x *executor) known(ctx context.Context, t *task) (entry, []ledger.Position, error) {
	e, err := x.loadEntry(ctx, t.tenant(), t.order())
	if err != nil {
		return entry{}, nil, err
	}
	positions, err := ledger.Positions(e.EffectEntry, t.action, t.sha)
	if err != nil {
		return entry{}, positions, err
	}
	for _, p := range positions {
		if p.Intent != nil {
			return e, positions, nil
		}
	}
	return entry{}, nil, ledger.Undecidable(ledger.ReasonNothingBegun, "nothing of the action was begun")
}

// shown gives the refunds of a complete reading by id.
func shown(v ledger.View) func(context.Context, string) (*amendsv1.Refund, error) {
	return func(_ context.Context, id string) (*amendsv1.Refund, error) {
		for _, r := range v.Refunds {
			if r.GetRefundId() == id {
				return r, nil
			}
		}
		return nil, provider.ErrNotFound
	}
}
