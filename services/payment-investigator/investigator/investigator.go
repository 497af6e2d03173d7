package investigator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/paymenttools"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/taskwork"
	"github.com/amends-dev/amends/internal/tools"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Deps are what the investigator works with.
type Deps struct {
	Bus *bus.Conn
	Log *slog.Logger
	Now func() time.Time
}

// Numbers of the calls of a task.
const (
	callCaptures = iota + 1
	callRefunds
	callSettlement
)

// maxListed is how many captures, refunds or disputes evidence can hold.
const maxListed = 64

const (
	reasonUnavailable = "payments_unavailable"
	reasonTooMany     = "too_many_records"
)

// Run works on payment tasks until ctx ends.
func Run(ctx context.Context, cfg Config, deps Deps) error {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	client, err := cfg.Payments.Open(deps.Log)
	if err != nil {
		return err
	}
	defer client.Close()
	registry, err := tools.New(roles.Desk(), roles.PaymentInvestigator, deps.Now)
	if err != nil {
		return err
	}
	work := func(ctx context.Context, t taskwork.Task) (proto.Message, error) {
		s := registry.Open(t.Contract, t.Suffix, t.Envelope.GetAttempt(), t.Received)
		if t.Assign.GetPayment().GetOrderId() != t.Contract.GetScope().GetOrderId() {
			return nil, taskwork.Fail(taskwork.ReasonScopeDenied, false, errors.New("the order is not the one in scope"))
		}
		return investigate(ctx, s, client, t.Envelope.GetAttempt())
	}
	return taskwork.Run(ctx, deps.Bus, taskwork.Options{
		Workers: cfg.Workers, Slices: []amendsv1.Slice{amendsv1.Slice_SLICE_PAYMENT}, Now: deps.Now,
	}, work)
}

// found is what the three look-ups gave; a nil one gave nothing.
type found struct {
	captures   *payments.Captures
	refunds    *payments.Refunds
	settlement *payments.Settlement
}

// investigate is the deterministic engine: it looks everything up at once and
// reports it.
func investigate(ctx context.Context, s *tools.Session, client *payments.Client, attempt uint32) (proto.Message, error) {
	var f found
	var errs [3]error
	var wait sync.WaitGroup
	wait.Go(func() { f.captures, errs[0] = paymenttools.Captures(ctx, s, callCaptures, client) })
	wait.Go(func() { f.refunds, errs[1] = paymenttools.Refunds(ctx, s, callRefunds, client) })
	f.settlement, errs[2] = paymenttools.Settlement(ctx, s, callSettlement, client)
	wait.Wait()
	if err := failed(errs, attempt); err != nil {
		err.Session = s
		return nil, err
	}
	return evidence(f, s.Calls(), s.Usage()), nil
}

// failed decides whether the look-ups that gave nothing end the task: all of
// them, or one in the first attempt, because a second may well get everything.
// What the provider does not know is an answer and ends nothing.
func failed(errs [3]error, attempt uint32) *taskwork.Failure {
	var missing int
	var last error
	for _, err := range errs {
		if err == nil || errors.Is(err, payments.ErrNotFound) {
			continue
		}
		if refused, ok := errors.AsType[*tools.Refused](err); ok {
			return &taskwork.Failure{Reason: refused.Reason, Retryable: refused.Reason == tools.ReasonExpired, Err: err}
		}
		missing++
		last = err
	}
	retry := errors.Is(last, payments.ErrUnavailable)
	if missing == len(errs) || missing > 0 && retry && attempt <= 1 {
		return &taskwork.Failure{Reason: reasonUnavailable, Retryable: retry, Err: last}
	}
	return nil
}

// evidence merges the look-ups.
func evidence(f found, calls []*amendsv1.ToolCall, used *amendsv1.Usage) *amendsv1.PaymentEvidence {
	e := &amendsv1.PaymentEvidence{Calls: calls, Usage: used}
	if f.captures != nil {
		e.Order, e.Captures, e.Disputes = f.captures.Order, f.captures.Captures, f.captures.Disputes
		if len(e.GetCaptures()) > maxListed || len(e.GetDisputes()) > maxListed {
			e.Captures, e.Disputes = e.Captures[:min(len(e.Captures), maxListed)], e.Disputes[:min(len(e.Disputes), maxListed)]
			overflow(calls, roles.ToolListCaptures)
		}
	}
	if f.refunds != nil {
		e.Refunds = f.refunds.Refunds
		if len(e.GetRefunds()) > maxListed {
			e.Refunds = e.Refunds[:maxListed]
			overflow(calls, roles.ToolListRefunds)
		}
	}
	if f.settlement != nil {
		settle(e.GetCaptures(), f.settlement.Payments)
	}
	e.Complete = len(calls) == 3
	for _, c := range calls {
		e.Complete = e.Complete && c.GetOutcome() == amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED
	}
	return e
}

// overflow marks a look-up whose answer a record cannot hold.
func overflow(calls []*amendsv1.ToolCall, tool string) {
	for _, c := range calls {
		if c.GetTool() == tool {
			c.Outcome, c.Reason = amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE, reasonTooMany
		}
	}
}

// settle compares the listed captures with the settlement look-up. Where they
// agree the record stays as listed; where they do not, settled is set against
// the status, so that the record contradicts itself for everybody to see.
func settle(captures []*amendsv1.Capture, settled []payments.PaymentSettlement) {
	byID := make(map[string]payments.PaymentSettlement, len(settled))
	for _, s := range settled {
		byID[s.PaymentID] = s
	}
	for _, c := range captures {
		s, listed := byID[c.GetPaymentId()]
		if c.GetSettledAt() == nil && s.Settled {
			c.SettledAt = s.SettledAt
		}
		sameTime := s.SettledAt == nil || c.GetSettledAt().AsTime().Equal(s.SettledAt.AsTime())
		if listed && s.Settled == c.GetSettled() && sameTime || !listed && !c.GetSettled() {
			continue
		}
		c.Settled = c.GetStatus() != amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED
	}
}
