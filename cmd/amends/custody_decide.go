package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// custodyDecideCmd is `amends custody decide`.
type custodyDecideCmd struct {
	signFlags
	Refund      []string `sep:"none" placeholder:"PAYMENT=AMOUNT" group:"Decision" help:"Propose a refund of AMOUNT, in the payment's currency, on PAYMENT; repeatable. Somebody else has to approve it."`
	Goodwill    bool     `group:"Decision" help:"The refunds may take the order below its total."`
	Decline     bool     `group:"Decision" help:"Decide against a refund; the desk tells the customer."`
	Ask         string   `placeholder:"TEXT" group:"Decision" help:"Ask the customer a question."`
	Investigate bool     `group:"Decision" help:"Have the desk look the evidence up again."`
	Reply       string   `placeholder:"TEXT" group:"Decision" help:"Close the case with your own reply."`
	Reason      string   `help:"Why; part of what is signed."`
}

// AfterApply checks that exactly one decision was made.
func (c *custodyDecideCmd) AfterApply() error {
	if err := c.signFlags.AfterApply(); err != nil {
		return err
	}
	made := 0
	for _, is := range []bool{len(c.Refund) > 0, c.Decline, c.Ask != "", c.Investigate, c.Reply != ""} {
		if is {
			made++
		}
	}
	switch {
	case made != 1:
		return errors.New("say one of --refund, --decline, --ask, --investigate and --reply")
	case c.Goodwill && len(c.Refund) == 0:
		return errors.New("--goodwill goes with --refund")
	}
	return nil
}

// Run decides.
func (c *custodyDecideCmd) Run(ctx context.Context, t *terminal) error {
	s := custodyStep{reason: c.Reason}
	switch {
	case len(c.Refund) > 0:
		s.step, s.refunds = amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE, c.refunds
	case c.Decline:
		s.step = amendsv1.CustodyStep_CUSTODY_STEP_DECLINE
	case c.Ask != "":
		s.step, s.text = amendsv1.CustodyStep_CUSTODY_STEP_ASK, c.Ask
	case c.Investigate:
		s.step = amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE
	default:
		s.step, s.text = amendsv1.CustodyStep_CUSTODY_STEP_CLOSE, c.Reply
	}
	return c.signCustody(ctx, t, s)
}

// refunds makes what is proposed, in the currency of each payment.
func (c *custodyDecideCmd) refunds(shown deskapi.Custody) ([]*amendsv1.ActionRefund, error) {
	kind := approval.KindDuplicate
	if c.Goodwill {
		kind = approval.KindGoodwill
	}
	var out []*amendsv1.ActionRefund
	for _, r := range c.Refund {
		payment, amount, ok := strings.Cut(r, "=")
		if !ok {
			return nil, fmt.Errorf("--refund %s: want PAYMENT=AMOUNT", r)
		}
		i := slices.IndexFunc(shown.Evidence.Captures, func(p deskapi.Capture) bool { return p.PaymentID == payment })
		if i < 0 {
			return nil, fmt.Errorf("--refund %s: the case's evidence has no such payment", r)
		}
		m, err := money.Parse(amount, shown.Evidence.Captures[i].Amount.Currency)
		if err != nil {
			return nil, fmt.Errorf("--refund %s: %w", r, err)
		}
		out = append(out, &amendsv1.ActionRefund{PaymentId: payment, Amount: m, Kind: kind, IdempotencyKey: approval.Key(shown.CaseID, payment)})
	}
	slices.SortFunc(out, func(a, b *amendsv1.ActionRefund) int { return strings.Compare(a.GetPaymentId(), b.GetPaymentId()) })
	return out, nil
}
