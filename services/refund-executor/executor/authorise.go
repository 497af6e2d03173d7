package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/amends-dev/amends/internal/approval"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// authorise goes from approval over the order's re-reading to the caps, and
// gives the entry with the action's intents, not yet durable. clock is what the
// broker's has shown.
func (x *executor) authorise(ctx context.Context, t *task, e entry, positions []ledger.Position, clock time.Time) (*amendsv1.EffectEntry, error) {
	at := x.at(clock)
	if err := x.resendable(positions, at); err != nil {
		return nil, err
	}
	// A refund in doubt has spent its approval and its part of the caps.
	anew := slices.ContainsFunc(positions, func(p ledger.Position) bool { return p.Standing == ledger.Fresh || p.Standing == ledger.Idle })
	var ids []string
	people := !anew && ledger.Approved(positions)
	if anew {
		var err error
		if ids, err = x.approved(t, at); err != nil {
			return nil, err
		}
		people = len(ids) > 0
	}
	order, err := x.readOrder(ctx, t)
	if err != nil {
		return nil, err
	}
	adm, err := ledger.Admit(ledger.Question{
		Entry: e.EffectEntry, View: order, Action: t.action, Positions: positions, Approved: people, At: at,
	})
	if err != nil {
		return nil, err
	}
	if anew {
		if err := x.enough(t, ids, adm.Recent); err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			if err := x.reserve(ctx, t, positions, adm.Recent, at); err != nil {
				return nil, err
			}
		}
	}
	return ledger.WriteIntent(e.EffectEntry, ledger.Begin{
		Action: t.action, SHA256: t.sha, Positions: positions, ApprovalIDs: ids, At: at, Clock: clock, Window: x.cfg.CallWindow,
		Body: func(r *amendsv1.ActionRefund) ([]byte, error) { return x.body(t, r) },
	})
}

// resendable refuses to send a refund in doubt again when the provider keeps
// no keys, or may have forgotten this one by the time the call ends.
func (x *executor) resendable(positions []ledger.Position, at time.Time) error {
	for _, p := range positions {
		if p.Standing != ledger.Doubtful {
			continue
		}
		if x.provider.Promises().KeyWindow == 0 {
			return ledger.Undecidable(reasonNoKeys, "key %s is in doubt", p.Intent.GetIdempotencyKey())
		}
		forgotten := ledger.FirstBegun(p.Intent).Add(x.provider.Promises().KeyWindow)
		if !at.Add(x.cfg.CallWindow + x.provider.Promises().CallTimeout).Before(forgotten) {
			return ledger.Undecidable(reasonKeyWindow, "key %s may be forgotten from %s", p.Intent.GetIdempotencyKey(), forgotten.Format(time.RFC3339))
		}
	}
	return nil
}

// approved checks the signatures an action came with, and that they are enough
// for its own sum; it gives the approval ids.
func (x *executor) approved(t *task, at time.Time) ([]string, error) {
	registry, err := x.approvers()
	if err != nil {
		return nil, err
	}
	ids, err := approval.Sufficient(registry, t.action, t.approvals, 0, at)
	if err != nil {
		return nil, err
	}
	for _, d := range t.approvals {
		if age := at.Sub(d.GetSignedAt().AsTime()); age > x.cfg.ApprovalLife || age < -signedAhead {
			return nil, ledger.Refuse(ledger.ReasonApprovalStale, "approval %s was signed at %s", d.GetApprovalId(), d.GetSignedAt().AsTime().Format(time.RFC3339))
		}
	}
	sum, err := approval.Total(t.action)
	if err != nil {
		return nil, err
	}
	if err := x.enough(t, ids, sum); err != nil {
		return nil, err
	}
	if expires := t.action.GetExpires().AsTime(); !at.Before(expires) {
		return nil, ledger.Refuse(ledger.ReasonActionExpired, "action expired at %s", expires.Format(time.RFC3339))
	}
	return ids, nil
}

// enough checks that as many people approved as a sum needs.
func (x *executor) enough(t *task, ids []string, sum *amendsv1.Money) error {
	needed := x.policy.Approvers(sum)
	if t.action.GetProposedBy() != "" {
		needed = max(needed, 1) // what a person proposed, another approves
	}
	switch {
	case len(ids) >= needed:
		return nil
	case len(t.approvals) == 0:
		return ledger.Refuse(ledger.ReasonApprovalMissing, "%d approvers are needed", needed)
	}
	return ledger.Refuse(approval.ReasonTooFew, "%d of %d approvers", len(ids), needed)
}

// readOrder reads everything on the order with the executor's own credential.
func (x *executor) readOrder(ctx context.Context, t *task) (ledger.View, error) {
	r, err := x.provider.ReadOrder(ctx, t.tenant(), t.order())
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return ledger.View{Tenant: t.tenant()}, nil
	case err != nil:
		return ledger.View{}, err
	}
	return ledger.View{Tenant: t.tenant(), Order: r.Order, Captures: r.Captures, Refunds: r.Refunds, Disputes: r.Disputes}, nil
}

// reserve books what nobody approved in the tenant's cap window. A race lost
// here is decided again as a whole.
func (x *executor) reserve(ctx context.Context, t *task, positions []ledger.Position, recent *amendsv1.Money, at time.Time) error {
	unlock, err := x.locks.lock(ctx, t.tenant())
	if err != nil {
		return err
	}
	defer unlock()
	w, seq, err := x.store.Caps(ctx, t.tenant())
	if err != nil {
		return err
	}
	next, err := x.policy.Reserve(w, t.tenant(), positions, recent, at)
	if err != nil || next == nil {
		return err
	}
	if _, err := x.store.SaveCaps(x.sending(ctx, ReservationSent, t.key()), next, seq); err != nil {
		return fmt.Errorf("reserve from the caps: %w", err)
	}
	return x.reached(ctx, ReservationDurable, t.key())
}

// body gives the bytes that a refund of the action is asked for with.
func (x *executor) body(t *task, r *amendsv1.ActionRefund) ([]byte, error) {
	return x.provider.Body(provider.Request{
		Tenant: t.tenant(), OrderID: t.order(), PaymentID: r.GetPaymentId(), Amount: r.GetAmount(),
		Reference: r.GetIdempotencyKey(), Reason: r.GetKind(),
	})
}
