package paymenttools

import (
	"context"
	"errors"

	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/tools"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Reasons of a look-up that gave no usable answer.
const (
	ReasonNotFound     = "not_found"
	ReasonUnauthorized = "unauthorized"
	ReasonUnavailable  = "unavailable"
	ReasonRejected     = "rejected"
)

// Captures lists the payments of the order in scope.
func Captures(ctx context.Context, s *tools.Session, number int, c *payments.Client) (*payments.Captures, error) {
	return tools.Call(ctx, s, tools.Request{Number: number, Tool: roles.ToolListCaptures}, func(ctx context.Context, sc *amendsv1.Scope) (tools.Answer[*payments.Captures], error) {
		got, err := c.ListCaptures(ctx, sc.GetTenant(), sc.GetOrderId())
		if err != nil {
			return tools.Answer[*payments.Captures]{}, miss(err)
		}
		return tools.Answer[*payments.Captures]{Value: got, Raw: got.Raw, SourceVersion: got.SourceVersion}, nil
	})
}

// Refunds lists the refunds of the order in scope.
func Refunds(ctx context.Context, s *tools.Session, number int, c *payments.Client) (*payments.Refunds, error) {
	return tools.Call(ctx, s, tools.Request{Number: number, Tool: roles.ToolListRefunds}, func(ctx context.Context, sc *amendsv1.Scope) (tools.Answer[*payments.Refunds], error) {
		got, err := c.ListRefunds(ctx, sc.GetTenant(), sc.GetOrderId())
		if err != nil {
			return tools.Answer[*payments.Refunds]{}, miss(err)
		}
		return tools.Answer[*payments.Refunds]{Value: got, Raw: got.Raw, SourceVersion: got.SourceVersion}, nil
	})
}

// Settlement says which payments of the order in scope have settled.
func Settlement(ctx context.Context, s *tools.Session, number int, c *payments.Client) (*payments.Settlement, error) {
	return tools.Call(ctx, s, tools.Request{Number: number, Tool: roles.ToolGetSettlement}, func(ctx context.Context, sc *amendsv1.Scope) (tools.Answer[*payments.Settlement], error) {
		got, err := c.GetSettlement(ctx, sc.GetTenant(), sc.GetOrderId())
		if err != nil {
			return tools.Answer[*payments.Settlement]{}, miss(err)
		}
		return tools.Answer[*payments.Settlement]{Value: got, Raw: got.Raw, SourceVersion: got.SourceVersion}, nil
	})
}

// Refund reads one refund of the tenant in scope.
func Refund(ctx context.Context, s *tools.Session, number int, c *payments.Client, refundID string) (*amendsv1.Refund, error) {
	q := tools.Request{Number: number, Tool: roles.ToolGetRefund, Args: []tools.Arg{{Name: "refund_id", Value: refundID}}}
	return tools.Call(ctx, s, q, func(ctx context.Context, sc *amendsv1.Scope) (tools.Answer[*amendsv1.Refund], error) {
		got, err := c.GetRefund(ctx, sc.GetTenant(), refundID)
		if err != nil {
			return tools.Answer[*amendsv1.Refund]{}, miss(err)
		}
		return tools.Answer[*amendsv1.Refund]{Value: got.Refund, Raw: got.Raw}, nil
	})
}

// miss classifies a client error.
func miss(err error) error {
	m := &tools.Miss{Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_FAILED, Reason: ReasonUnavailable, Err: err}
	switch {
	case errors.Is(err, payments.ErrNotFound):
		m.Outcome, m.Reason = amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE, ReasonNotFound
	case errors.Is(err, payments.ErrUnauthorized):
		m.Reason = ReasonUnauthorized
	case errors.Is(err, payments.ErrRejected):
		m.Reason = ReasonRejected
	}
	return m
}
