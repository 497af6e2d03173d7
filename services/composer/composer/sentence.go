package composer

import (
	"errors"
	"fmt"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// page is a reply's facts; some sentences depend on the others.
type page struct{ facts []*amendsv1.Claim }

func (p page) count(k amendsv1.ClaimKind) int {
	n := 0
	for _, c := range p.facts {
		if c.GetKind() == k {
			n++
		}
	}
	return n
}

func (p page) sentence(c *amendsv1.Claim) (string, error) {
	if err := complete(c); err != nil {
		return "", fmt.Errorf("%s: %w", c.GetKind(), err)
	}
	amount := ""
	if c.GetAmount() != nil {
		amount = money.Format(c.GetAmount())
	}
	switch c.GetKind() {
	case amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND:
		if c.GetCount() == 1 {
			return fmt.Sprintf("I found one payment of %s for this order.", amount), nil
		}
		return fmt.Sprintf("I found %d payments of %s each for this order.", c.GetCount(), amount), nil
	case amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND:
		if c.GetCount() <= 1 {
			return fmt.Sprintf("I found a duplicate payment: %s was taken once more than owed.", amount), nil
		}
		return fmt.Sprintf("I found duplicate payments: %s was taken %d times more than owed.", amount, c.GetCount()), nil
	case amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS:
		return fmt.Sprintf("A refund of %s (reference %s) %s.", amount, c.GetRefundId(), refundState(c.GetRefundStatus())), nil
	case amendsv1.ClaimKind_CLAIM_KIND_REFUND_FAILED:
		return fmt.Sprintf("The refund of %s (reference %s) did not go through.", amount, c.GetRefundId()), nil
	case amendsv1.ClaimKind_CLAIM_KIND_NO_REFUND_ON_RECORD:
		if p.count(amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS) > 0 {
			return "Before that, there was no refund on record for this order.", nil
		}
		return "There is no refund on record for this order.", nil
	case amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN:
		which := "The amount"
		if p.count(amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN) == 1 {
			which = "The second amount"
		}
		return fmt.Sprintf("%s, %s, is a hold (an authorisation) and was not taken.", which, amount), nil
	case amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT:
		return fmt.Sprintf("I will look at this again on %s.", moment(c)), nil
	case amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY:
		return fmt.Sprintf("Please reply by %s.", moment(c)), nil
	case amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW:
		return fmt.Sprintf("The payment is outside the %d days that the automatic rule covers.", c.GetDays()), nil
	case amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART:
		if c.GetMethod() == "" || c.GetMethod() == "payment" {
			return fmt.Sprintf("%s was paid.", amount), nil
		}
		return fmt.Sprintf("%s was paid by %s.", amount, c.GetMethod()), nil
	case amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL:
		if p.count(amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART) > 1 {
			return fmt.Sprintf("Together these make up the order total of %s.", amount), nil
		}
		return fmt.Sprintf("The order total is %s.", amount), nil
	default:
		if s, ok := fixed[c.GetKind()]; ok {
			return s, nil
		}
		return "", fmt.Errorf("no sentence for %s", c.GetKind())
	}
}

// complete reports what a claim of its kind lacks.
func complete(c *amendsv1.Claim) error {
	switch c.GetKind() {
	case amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS, amendsv1.ClaimKind_CLAIM_KIND_REFUND_FAILED:
		if c.GetRefundId() == "" {
			return errors.New("no refund id")
		}
		return money.Valid(c.GetAmount())
	case amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND, amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND, amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN,
		amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART, amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL:
		return money.Valid(c.GetAmount())
	case amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT, amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY:
		return c.GetTime().CheckValid()
	case amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW:
		if c.GetDays() == 0 {
			return errors.New("no days")
		}
	default: // told in fixed words
	}
	return nil
}

// fixed are the facts that are told in the same words every time.
var fixed = map[amendsv1.ClaimKind]string{
	amendsv1.ClaimKind_CLAIM_KIND_NOTHING_TAKEN:              "No money was taken for this order.",
	amendsv1.ClaimKind_CLAIM_KIND_ORDER_NOT_FOUND:            "I cannot find that order under your account.",
	amendsv1.ClaimKind_CLAIM_KIND_ASK_ORDER_NUMBER:           "Please confirm the order number.",
	amendsv1.ClaimKind_CLAIM_KIND_HANDED_TO_PERSON:           "Your request has been passed to a specialist, who will continue with it.",
	amendsv1.ClaimKind_CLAIM_KIND_CANCELLED_NOTHING_REFUNDED: "Your request has been cancelled, nothing was refunded.",
	amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED:            "A person reviewed your request and decided against it.",
	amendsv1.ClaimKind_CLAIM_KIND_PERSON_CAN_REVIEW:          "A person can review it if you ask for that.",
	amendsv1.ClaimKind_CLAIM_KIND_EVIDENCE_PENDING:           "The payment records are not complete yet, so nothing has been decided.",
	amendsv1.ClaimKind_CLAIM_KIND_SENSITIVE_DATA_MASKED:      "Your message held what looked like card data or a code, and it was masked before it was stored. Please do not send such data.",
}

// refundState says how a refund stands, in the provider's own terms: only
// a succeeded one is completed.
func refundState(s amendsv1.RefundStatus) string {
	switch s {
	case amendsv1.RefundStatus_REFUND_STATUS_PENDING:
		return "has been requested and is pending at the bank"
	case amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED:
		return "was completed"
	case amendsv1.RefundStatus_REFUND_STATUS_FAILED:
		return "failed"
	case amendsv1.RefundStatus_REFUND_STATUS_CANCELED:
		return "was cancelled"
	case amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION:
		return "has been requested and needs a further step at the bank"
	default:
		return "has been requested, and its status is not known yet"
	}
}

// moment writes a time as 12 March 2026, 14:14 UTC.
func moment(c *amendsv1.Claim) string {
	return c.GetTime().AsTime().UTC().Format("2 January 2006, 15:04 UTC")
}
