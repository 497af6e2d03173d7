package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// Reason codes of the executor's answers, besides those of the ledger.
const (
	reasonStopped        = "stopped"
	reasonStopUnreadable = "stop_unreadable"
	reasonCallWindow     = "call_window_passed"
	reasonNoKeys         = "provider_keeps_no_keys"
	reasonKeyWindow      = "key_window_passed"
	reasonNotRecorded    = "outcome_not_recorded"
	reasonReadBack       = "read_back_differs"
	reasonNotShown       = "read_back_missing"
)

// refuse answers with a refusal of the executor's own checks, and records it.
// Any other error passes through.
func (x *executor) refuse(ctx context.Context, t *task, positions []ledger.Position, err error) (*amendsv1.EffectResult, error) {
	if _, judged := errors.AsType[*ledger.Refusal](err); !judged {
		if a, ok := errors.AsType[*approval.Refusal](err); ok {
			err = ledger.Refuse(a.Reason, "%w", a.Err)
		}
	}
	r, ok := errors.AsType[*ledger.Refusal](ledger.InDoubt(err, positions))
	if !ok {
		return nil, err
	}
	res := ledger.Result(t.sha, positions)
	res.Class, res.Reason, res.CancelRevision = r.Class, r.Reason, r.CancelRevision
	if r.Class == amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN {
		return res, nil // the tombstone is the record
	}
	x.metrics.refused(ctx, r.Reason)
	x.log.Warn("action refused", slog.String("tenant", t.tenant()), slog.String("case", t.env.GetCaseId()), slog.String("order", t.order()),
		slog.String("reason", r.Reason), slog.String("trace", t.env.GetTraceId()), slog.Any("error", r.Err))
	return res, x.audit(ctx, t, r)
}

// undecided makes a refusal one that does not end the case: where money may have
// moved, a check that fails says nothing about it. What was withdrawn stays so,
// and what a person settled.
func undecided(err error) error {
	r, ok := errors.AsType[*ledger.Refusal](err)
	if ok && r.Class == amendsv1.EffectClass_EFFECT_CLASS_REFUSED && r.Reason != ledger.ReasonSettledAbsent {
		return ledger.Undecidable(r.Reason, "%w", r.Err)
	}
	return err
}

// audit records a refusal: the effect ledger holds only what was begun.
func (x *executor) audit(ctx context.Context, t *task, r *ledger.Refusal) error {
	err := x.store.Audit(x.sending(ctx, RefusalSent, t.key()), t.tenant(), &amendsv1.AuditEvent{
		Service: string(roles.RefundExecutor), Actor: string(roles.RefundExecutor), Action: "refund." + className(r.Class),
		Subject: t.env.GetCaseId(), Outcome: r.Reason, TraceId: t.env.GetTraceId(), At: timestamppb.New(x.now()),
	})
	if err != nil {
		return fmt.Errorf("audit a refusal: %w", err)
	}
	return nil
}
