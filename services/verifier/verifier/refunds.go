package verifier

import (
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// namedRefunds checks every refund reference of the text.
func (c *checker) namedRefunds() {
	ids := map[string]bool{}
	for _, s := range c.sentences {
		for _, id := range s.refunds {
			if ids[id] {
				continue
			}
			ids[id] = true
			if len(ids) > maxRefunds {
				c.add("refund_id", id, reasonTooManyRefunds, "")
				return
			}
			c.add("refund_id", id, c.refundFault(id), c.seen.refundCalls[id])
		}
	}
}

// refundFault says why a refund may not be named, or nothing.
func (c *checker) refundFault(id string) string {
	r, fact := c.seen.refunds[id], c.refundFact(id)
	switch {
	case r == nil:
		return reasonUnknownRefund
	case fact == nil || !same(fact.GetAmount(), r.GetAmount()):
		return reasonNotInRecord
	}
	if c.seen.captures != nil {
		for _, p := range c.seen.captures.Captures {
			if p.GetPaymentId() == r.GetPaymentId() {
				return ""
			}
		}
	}
	return reasonNotInRecord // of another order
}

func (c *checker) refundFact(id string) *amendsv1.Claim {
	for _, f := range c.records.GetFacts() {
		if f.GetRefundId() == id && (f.GetKind() == amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS || f.GetKind() == amendsv1.ClaimKind_CLAIM_KIND_REFUND_FAILED) {
			return f
		}
	}
	return nil
}

// refundWording checks what a sentence says of money going back.
func (c *checker) refundWording(s *sentence) {
	first, affirmed := c.root(s)
	if first < 0 {
		return
	}
	words := c.words(first-1, first+4)
	if !affirmed {
		if !c.hasFact(amendsv1.ClaimKind_CLAIM_KIND_NO_REFUND_ON_RECORD, amendsv1.ClaimKind_CLAIM_KIND_CANCELLED_NOTHING_REFUNDED, amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED) {
			c.add("refund_wording", words, reasonClaim, "")
		}
		return
	}
	ids := s.refunds
	if len(ids) == 0 {
		for _, f := range c.records.GetFacts() {
			if f.GetRefundId() != "" {
				ids = append(ids, f.GetRefundId())
			}
		}
	}
	switch {
	case c.slice.GetKind() == amendsv1.ReplyKind_REPLY_KIND_HOLDING:
		c.add("refund_wording", words, reasonHolding, "")
	case len(ids) == 0:
		c.add("refund_wording", words, reasonNotInRecord, "")
	case c.onItsWay(s):
		c.add("refund_wording", words, reasonOverclaimed, "")
	default:
		for _, id := range ids {
			c.statusWording(s, id, words)
		}
	}
}

// root finds the first word of a sentence about money going back, and says
// whether any such word is affirmed.
func (c *checker) root(s *sentence) (first int, affirmed bool) {
	first = -1
	aboutMoney := s.any(cash|amountWord) || len(s.amounts) > 0 || c.isWritten() && s.any(payment)
	for i := s.first; i < s.end; i++ {
		isRoot := c.is(i, refund) || c.is(i, back) && c.nearGive(i) ||
			(c.is(i, moved) || c.is(i, sent)) && aboutMoney || c.is(i, sent) && s.any(domain)
		if !isRoot || c.isWritten() && c.ofTheCustomer(i, s) {
			continue
		}
		if first < 0 {
			first = i
		}
		affirmed = affirmed || !c.denied(i)
	}
	return first, affirmed
}

// ofTheCustomer reports a credit card, and what the customer sent, such as
// a bank statement: a person's questions speak of both.
func (c *checker) ofTheCustomer(i int, s *sentence) bool {
	if c.low(i) == "credit" && (c.low(i+1) == "card" || c.low(i+1) == "cards") {
		return true
	}
	by := c.low(i - 1)
	if by == "already" || by == "ever" {
		by = c.low(i - 2)
	}
	return (c.low(i) == "sent" || c.low(i) == "returned") && by == "you" && !s.any(cash|amountWord) && len(s.amounts) == 0
}

// nearGive reports "give back", "back in your account".
func (c *checker) nearGive(i int) bool {
	for j := max(c.begin(i), i-4); j < i; j++ {
		if c.is(j, give|cash|amountWord) || c.Tokens[j].Money != nil {
			return true
		}
	}
	return c.low(i+1) == "in" || c.low(i+1) == "to" || c.low(i+1) == "on"
}

func (c *checker) onItsWay(s *sentence) bool {
	for i := s.first; i < s.end; i++ {
		if c.low(i) == "way" && (c.low(i-1) == "its" || c.low(i-1) == "the" || c.low(i-1) == "their") {
			return true
		}
	}
	return false
}

// statusWording compares the wording of a sentence with how a refund stands at
// the provider now.
func (c *checker) statusWording(s *sentence, id, words string) {
	r := c.seen.refunds[id]
	if r == nil {
		if len(s.refunds) == 0 { // named nowhere, so it was not read: the id is missing
			c.add("refund_status", words, reasonMissing, "")
		}
		return // said by namedRefunds
	}
	status, call := r.GetStatus(), c.seen.refundCalls[id]
	succeeded := status == amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED
	ended := status == amendsv1.RefundStatus_REFUND_STATUS_FAILED || status == amendsv1.RefundStatus_REFUND_STATUS_CANCELED
	notThrough := s.has(no | through)
	switch {
	case c.says(s, done|returned) && !succeeded:
		c.add("refund_status", words, reasonOverclaimed, call)
	case (c.says(s, failed) || notThrough) && !ended:
		c.add("refund_status", words, reasonOverclaimed, call)
	case ended && !c.says(s, failed) && !notThrough:
		c.add("refund_status", words, reasonOverclaimed, call)
	default:
		c.add("refund_status", words, "", call)
	}
}
