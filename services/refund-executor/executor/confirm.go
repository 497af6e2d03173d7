package executor

import (
	"context"

	"github.com/amends-dev/amends/internal/approval"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// confirm says what became of an action's refunds: the order is read again and
// what it shows is recorded. What made the desk ask is a hint and is believed
// nothing. A refund in doubt that the reading shows is thereby found.
func (x *executor) confirm(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	return x.decide(ctx, t, func() (*amendsv1.EffectResult, error) {
		e, positions, err := x.known(ctx, t)
		if err != nil {
			return x.refuse(ctx, t, nil, undecided(err))
		}
		if ledger.Doubt(positions) {
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
				return nil, err
			}
		}
		return x.compared(ctx, t, positions, shown(look.View)), nil
	})
}

// settle records a custodian's answer to what became of the refunds in doubt,
// after checking the signature against the executor's own registry and the
// answer against what the provider shows. It calls nothing.
func (x *executor) settle(ctx context.Context, t *task) (*amendsv1.EffectResult, error) {
	return x.decide(ctx, t, func() (*amendsv1.EffectResult, error) {
		registry, err := x.approvers()
		if err != nil {
			return nil, err
		}
		d := t.decision
		if err := approval.CheckCustody(registry, t.tenant(), t.action.GetCaseId(), d, x.at(t.at)); err != nil {
			return x.refuse(ctx, t, nil, ledger.Undecidable(approval.ReasonOf(err), "%w", err))
		}
		e, positions, err := x.known(ctx, t)
		if err != nil {
			return x.refuse(ctx, t, nil, undecided(err))
		}
		look := ledger.Look{}
		if ledger.Doubt(positions) {
			if look, err = x.view(ctx, t, e); err != nil {
				return nil, err
			}
		}
		next, err := ledger.WriteSettlement(e.EffectEntry, ledger.Settling{
			Positions: positions, Answers: d.GetSettlements(), By: d.GetCustodianId(), Look: look, At: x.now(),
		})
		if err != nil {
			return x.refuse(ctx, t, positions, undecided(err))
		}
		if next != nil {
			if err := x.reached(ctx, LookedUp, t.key()); err != nil {
				return nil, err
			}
			if e, err = x.saveEntry(ctx, e, next); err != nil {
				return nil, err
			}
			if positions, err = ledger.Positions(e.EffectEntry, t.action, t.sha); err != nil {
				return nil, err
			}
		}
		return withoutRefund(x.conclude(ctx, t, positions)), nil
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
		return entry{}, nil, err
	}
	for _, p := range positions {
		if p.Intent != nil {
			return e, positions, nil
		}
	}
	return entry{}, nil, ledger.Undecidable(ledger.ReasonNothingBegun, "nothing of the action was begun")
}

// withoutRefund gives the final answer for an action a person settled to have
// made no refund: no call will follow by itself.
func withoutRefund(res *amendsv1.EffectResult) *amendsv1.EffectResult {
	if res.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT && res.GetReason() == ledger.ReasonSettledAbsent {
		res.Class = amendsv1.EffectClass_EFFECT_CLASS_REFUSED
	}
	return res
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
