package executor

import (
	"context"
	"slices"

	"github.com/amends-dev/amends/internal/approval"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// settle records a custodian's answer to what became of the refunds in doubt,
// after checking the signature against the executor's own registry and the
// answer against what the provider shows. It calls nothing. That there is none
// ends the action: no delivery of an old task begins it after that.
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
		e, err := x.loadEntry(ctx, t.tenant(), t.order())
		if err != nil {
			return nil, err
		}
		positions, err := ledger.Positions(e.EffectEntry, t.action, t.sha)
		if err != nil {
			return x.refuse(ctx, t, positions, undecided(err))
		}
		look := ledger.Look{}
		if !settled(positions) {
			if look, err = x.view(ctx, t, e); err != nil {
				return nil, err
			}
		}
		next, err := ledger.WriteSettlement(e.EffectEntry, ledger.Settling{
			Action: t.action, SHA256: t.sha, Positions: positions, Answers: d.GetSettlements(), By: d.GetCustodianId(), Look: look, At: x.now(),
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
				return x.refuse(ctx, t, positions, undecided(err))
			}
		}
		return withoutRefund(x.conclude(ctx, t, positions)), nil
	})
}

// withoutRefund gives the final answer for an action a person settled to have
// made no refund: no call will follow.
func withoutRefund(res *amendsv1.EffectResult) *amendsv1.EffectResult {
	none := slices.ContainsFunc(res.GetRefunds(), func(r *amendsv1.RefundResult) bool { return r.GetOutcome().GetReason() == ledger.ReasonSettledAbsent })
	if none && res.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT {
		res.Class, res.Reason = amendsv1.EffectClass_EFFECT_CLASS_REFUSED, ledger.ReasonSettledAbsent
	}
	return res
}
