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
	Settle      []string `sep:"none" placeholder:"KEY=REFUND" group:"Decision" help:"Say what became of a refund in doubt: KEY, or its payment, is REFUND at the provider, or none. Once for each that the packet asks about; the executor verifies it."`
	Resolve     string   `placeholder:"NOTE" group:"Decision" help:"End what only people were told of, a finding for instance, with NOTE and without a word to the customer."`
	Reason      string   `help:"Why; part of what is signed."`

	settlements []*amendsv1.Settlement
}

// AfterApply checks that exactly one decision was made.
func (c *custodyDecideCmd) AfterApply() error {
	if err := c.signFlags.AfterApply(); err != nil {
		return err
	}
	made := 0
	for _, is := range []bool{len(c.Refund) > 0, c.Decline, c.Ask != "", c.Investigate, c.Reply != "", len(c.Settle) > 0, c.Resolve != ""} {
		if is {
			made++
		}
	}
	switch {
	case made != 1:
		return errors.New("say one of --refund, --decline, --ask, --investigate, --reply, --settle and --resolve")
	case c.Goodwill && len(c.Refund) == 0:
		return errors.New("--goodwill goes with --refund")
	case c.Resolve != "" && c.Reason != "":
		return errors.New("--resolve says why by itself, without --reason")
	}
	var err error
	c.settlements, err = c.settled()
	return err
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
	case len(c.Settle) > 0:
		s.step, s.settlements = amendsv1.CustodyStep_CUSTODY_STEP_SETTLE, c.settlements
	case c.Resolve != "":
		s.step, s.reason = amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE, c.Resolve
	default:
		s.step, s.text = amendsv1.CustodyStep_CUSTODY_STEP_CLOSE, c.Reply
	}
	return c.signCustody(ctx, t, s)
}

// noRefund is how a person says that a refund does not exist.
const noRefund = "none"

// settled reads what became of each refund, in order of the keys.
func (c *custodyDecideCmd) settled() ([]*amendsv1.Settlement, error) {
	var out []*amendsv1.Settlement
	for _, s := range c.Settle {
		key, refund, ok := strings.Cut(s, "=")
		if !ok || key == "" || refund == "" {
			return nil, fmt.Errorf("--settle %s: want KEY=REFUND, or KEY=%s", s, noRefund)
		}
		if !strings.Contains(key, ":") { // the payment
			key = approval.Key(c.Case, key)
		}
		if refund == noRefund {
			refund = ""
		}
		if slices.ContainsFunc(out, func(o *amendsv1.Settlement) bool { return o.GetIdempotencyKey() == key }) {
			return nil, fmt.Errorf("--settle %s: %s is there twice", s, key)
		}
		out = append(out, &amendsv1.Settlement{IdempotencyKey: key, RefundId: refund})
	}
	slices.SortFunc(out, func(a, b *amendsv1.Settlement) int {
		return strings.Compare(a.GetIdempotencyKey(), b.GetIdempotencyKey())
	})
	return out, nil
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
