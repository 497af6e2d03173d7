package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

const (
	// maxCalls bounds the tries of a call that provably did nothing; the pause
	// before the next doubles.
	maxCalls  = 3
	callPause = 100 * time.Millisecond
	// stopHolds is how long a look at the stop switches permits a call to start.
	stopHolds = time.Second
	// An outcome is written also when the task's own time is up.
	recordTimeout = 15 * time.Second
	recordPause   = 100 * time.Millisecond
)

// perform calls the provider for every refund that e has begun, records each
// outcome before the next call, and answers.
func (x *executor) perform(ctx context.Context, t *task, e entry) (*amendsv1.EffectResult, error) {
	positions, err := ledger.Positions(e.EffectEntry, t.action, t.sha)
	if err != nil {
		return nil, err
	}
	held, until := false, e.until
	for _, p := range positions {
		if !p.Open() {
			continue
		}
		key := p.Refund.GetIdempotencyKey()
		if err := x.reached(ctx, IntentDurable, key); err != nil {
			return nil, err
		}
		a, err := x.call(ctx, t, p.Intent, until)
		if err != nil {
			return nil, err
		}
		held = held || a.Reason == reasonStopped
		if err := x.reached(ctx, Called, key); err != nil {
			return nil, err
		}
		if e, err = x.record(ctx, t, e, p.Intent, a); err != nil && a.Class != amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT {
			err = &gap{result: unrecorded(t, positions, key, a), err: err}
		}
		if err != nil {
			return nil, err
		}
		if err := x.reached(ctx, OutcomeDurable, key); err != nil {
			return nil, err
		}
	}
	if positions, err = ledger.Positions(e.EffectEntry, t.action, t.sha); err != nil {
		return x.refuse(ctx, t, positions, err) // withdrawn, or settled, since nothing was done
	}
	res := x.conclude(ctx, t, positions)
	if held && ledger.Worst(res.GetClass(), amendsv1.EffectClass_EFFECT_CLASS_HELD) == amendsv1.EffectClass_EFFECT_CLASS_HELD {
		res.Class, res.Reason = amendsv1.EffectClass_EFFECT_CLASS_HELD, reasonStopped
	}
	return res, nil
}

// call sends a begun refund: with its key and its stored bytes, not while
// a stop is set, not long after the look that says so, and not after the call
// window. Only a call that provably did nothing is tried again, with a new look. until is the end of the window by how long it lasts,
// which holds also when the clock is set back in it.
func (x *executor) call(ctx context.Context, t *task, in *amendsv1.EffectIntent, until time.Time) (ledger.Answer, error) {
	if said := in.GetCallBefore().AsTime(); said.Before(until) {
		until = said
	}
	nothing := func(reason string) (ledger.Answer, error) {
		return ledger.Answer{Class: amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, Reason: reason}, nil
	}
	var a ledger.Answer
	for try := range maxCalls {
		if try > 0 && x.wait(ctx, callPause<<(try-1)) != nil {
			return a, nil
		}
		looked := x.now()
		stopped, err := x.store.Stopped(ctx, t.tenant())
		switch {
		case err != nil:
			x.log.Error("stop switch not readable", slog.String("case", t.env.GetCaseId()), slog.Any("error", err))
			return nothing(reasonStopUnreadable)
		case stopped:
			return nothing(reasonStopped)
		case !x.now().Before(until):
			return nothing(reasonCallWindow)
		}
		if err := x.reached(ctx, StopLookedAt, in.GetIdempotencyKey()); err != nil {
			return ledger.Answer{}, err
		}
		notAfter := looked.Add(stopHolds)
		if until.Before(notAfter) {
			notAfter = until
		}
		out := x.provider.Create(ctx, in.GetIdempotencyKey(), in.GetBody(), notAfter)
		if out.Err != nil {
			x.log.Warn("refund call", slog.String("case", t.env.GetCaseId()), slog.String("class", className(out.Class)), slog.String("reason", out.Reason), slog.Any("error", out.Err))
		}
		a = ledger.Answer{Class: out.Class, RefundID: out.RefundID, Status: out.Status, Reason: out.Reason}
		if out.Class != amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT {
			return a, nil
		}
	}
	return a, nil
}

// record makes a call's answer durable. A lost race or acknowledgement is
// decided again from the leader's copy; the answer itself never changes.
func (x *executor) record(ctx context.Context, t *task, e entry, in *amendsv1.EffectIntent, a ledger.Answer) (entry, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var failed error
	for try := range maxRaces {
		if try > 0 {
			x.metrics.races.Add(ctx, 1)
			if !lost(failed) && x.wait(ctx, recordPause) != nil {
				break
			}
			if e, failed = x.loadEntry(ctx, t.tenant(), t.order()); failed != nil {
				continue
			}
		}
		next, err := ledger.WriteOutcome(e.EffectEntry, in.GetIdempotencyKey(), in.GetCalls(), a, x.now())
		if err != nil {
			return entry{}, fmt.Errorf("record outcome: %w", err)
		}
		if next == nil {
			return e, nil
		}
		saved, err := x.saveEntry(ctx, e, next)
		if err == nil {
			return saved, nil
		}
		failed = err
	}
	return entry{}, fmt.Errorf("record outcome: %w", failed)
}

// conclude answers with what the entry says, and with the provider's own
// record of each refund.
func (x *executor) conclude(ctx context.Context, t *task, positions []ledger.Position) *amendsv1.EffectResult {
	return x.compared(ctx, t, positions, func(ctx context.Context, id string) (*amendsv1.Refund, error) {
		return x.provider.GetRefund(ctx, t.tenant(), id)
	})
}

// compared answers with what the entry says, beside what the provider shows of
// each refund. One that cannot be read now is left out: the acknowledgement
// stands without it. One that is not there, or another than was asked for,
// keeps the case open.
func (x *executor) compared(ctx context.Context, t *task, positions []ledger.Position, read func(ctx context.Context, id string) (*amendsv1.Refund, error)) *amendsv1.EffectResult {
	res := ledger.Result(t.sha, positions)
	for _, r := range res.GetRefunds() {
		if r.GetOutcome().GetRefundId() == "" {
			continue
		}
		got, err := read(ctx, r.GetOutcome().GetRefundId())
		switch {
		case errors.Is(err, provider.ErrNotFound) && r.GetOutcome().GetClass() == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED:
			x.log.Error("refund is not there", slog.String("case", t.env.GetCaseId()), slog.String("refund", r.GetOutcome().GetRefundId()))
			res.Class, res.Reason = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP, reasonNotShown
			continue
		case err != nil:
			x.log.Warn("refund not read back", slog.String("case", t.env.GetCaseId()), slog.String("refund", r.GetOutcome().GetRefundId()), slog.Any("error", err))
			continue
		}
		r.ReadBack = got
		if differs(got, r) {
			x.log.Error("refund differs from what was asked for", slog.String("case", t.env.GetCaseId()), slog.String("refund", r.GetOutcome().GetRefundId()))
			res.Class, res.Reason = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP, reasonReadBack
		}
	}
	return res
}

// differs compares a refund with what was asked for. One that a person settled
// was made without our reference.
func differs(got *amendsv1.Refund, r *amendsv1.RefundResult) bool {
	return got.GetPaymentId() != r.GetPaymentId() || !money.Equal(got.GetAmount(), r.GetAmount()) ||
		got.GetReference() != r.GetIdempotencyKey() && r.GetOutcome().GetSettledBy() == ""
}

// unrecorded answers for a call whose outcome could not be written.
func unrecorded(t *task, positions []ledger.Position, key string, a ledger.Answer) *amendsv1.EffectResult {
	res := ledger.Result(t.sha, positions)
	res.Class, res.Reason = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP, reasonNotRecorded
	for _, r := range res.GetRefunds() {
		if r.GetIdempotencyKey() == key {
			r.Outcome.Class, r.Outcome.Reason = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP, reasonNotRecorded
			r.Outcome.RefundId, r.Outcome.ProviderStatus = a.RefundID, a.Status
		}
	}
	return res
}
