package verifier

import (
	"strings"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// cue says by which words a sentence states a fact of a kind.
type cue struct {
	kind amendsv1.ClaimKind
	says func(c *checker, s *sentence) bool
}

// affirms is a cue of meanings that a sentence affirms, every one.
func affirms(kind amendsv1.ClaimKind, all ...mark) cue {
	return cue{kind, func(c *checker, s *sentence) bool {
		for _, m := range all {
			if !c.says(s, m) {
				return false
			}
		}
		return true
	}}
}

// cues read both ways: a sentence that states a fact needs it in the record,
// and a fact of the record needs a sentence that states it.
var cues = []cue{
	{amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND, func(c *checker, s *sentence) bool {
		return c.says(s, payment) && c.says(s, found) && !s.any(duplicate)
	}},
	affirms(amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND, duplicate),
	{amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS, func(c *checker, s *sentence) bool {
		_, affirmed := c.root(s)
		return affirmed
	}},
	{amendsv1.ClaimKind_CLAIM_KIND_REFUND_FAILED, func(c *checker, s *sentence) bool {
		_, affirmed := c.root(s)
		return affirmed && (c.says(s, failed) || s.has(no|through))
	}},
	{amendsv1.ClaimKind_CLAIM_KIND_NO_REFUND_ON_RECORD, func(c *checker, s *sentence) bool { return c.denies(s, refund) && s.any(records) }},
	{amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN, func(c *checker, s *sentence) bool { return c.says(s, hold) && c.denies(s, taken) }},
	affirms(amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT, look, again),
	affirms(amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW, outside),
	{amendsv1.ClaimKind_CLAIM_KIND_NOTHING_TAKEN, func(c *checker, s *sentence) bool {
		return c.denies(s, taken) && s.any(cash|payment) && !s.any(hold)
	}},
	{amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART, func(c *checker, s *sentence) bool {
		_, affirmed := c.root(s)
		return c.says(s, paid) && len(s.amounts) > 0 && !affirmed
	}},
	{amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL, func(c *checker, s *sentence) bool { return c.says(s, total) && len(s.amounts) > 0 }},
	{amendsv1.ClaimKind_CLAIM_KIND_ORDER_NOT_FOUND, func(c *checker, s *sentence) bool { return c.denies(s, found) && s.any(order) }},
	affirms(amendsv1.ClaimKind_CLAIM_KIND_ASK_ORDER_NUMBER, confirm, order, number),
	affirms(amendsv1.ClaimKind_CLAIM_KIND_HANDED_TO_PERSON, passed, person),
	affirms(amendsv1.ClaimKind_CLAIM_KIND_CANCELLED_NOTHING_REFUNDED, cancelled, request),
	affirms(amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED, reviewed, declined),
	{amendsv1.ClaimKind_CLAIM_KIND_PERSON_CAN_REVIEW, func(c *checker, s *sentence) bool {
		return c.says(s, person) && c.says(s, can) && !s.any(passed)
	}},
	{amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY, func(c *checker, s *sentence) bool { return c.says(s, reply) && len(s.dates) > 0 && !s.any(again) }},
	{amendsv1.ClaimKind_CLAIM_KIND_EVIDENCE_PENDING, func(c *checker, s *sentence) bool { return s.any(records) && c.denies(s, complete) }},
	affirms(amendsv1.ClaimKind_CLAIM_KIND_SENSITIVE_DATA_MASKED, masked),
}

// says reports that a sentence affirms a word of a meaning.
func (c *checker) says(s *sentence, m mark) bool {
	if !s.any(m) {
		return false
	}
	for i := s.first; i < s.end; i++ {
		if c.is(i, m) && !c.denied(i) {
			return true
		}
	}
	return false
}

// denies reports that a sentence has words of a meaning and affirms none.
func (c *checker) denies(s *sentence, m mark) bool { return s.any(m) && !c.says(s, m) }

// matter are the words that make a sentence a statement about the case.
const matter = domain | refund | payment | cash | taken | paid | cancelled | passed | decided | declined | duplicate | hold | order | outside | total | records

// statement checks what a sentence says besides its numbers.
func (c *checker) statement(s *sentence) {
	if c.isWritten() {
		c.written(s)
		return
	}
	c.refundWording(s)
	c.future(s)
	stated := 0
	for _, q := range cues {
		if !q.says(c, s) {
			continue
		}
		stated++
		_, isRefund := refundKinds[q.kind]
		if !c.hasFact(q.kind) && !isRefund { // refund wording has said it more exactly
			c.add("claim", c.quote(s), reasonClaim, "")
		}
	}
	// A sentence about the matter that states no fact is a claim nobody can
	// check.
	if stated == 0 && (s.any(matter) || len(s.amounts) > 0) && !c.courtesy(s) {
		c.add("statement", c.quote(s), reasonStatement, "")
	}
}

var refundKinds = map[amendsv1.ClaimKind]struct{}{
	amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS: {}, amendsv1.ClaimKind_CLAIM_KIND_REFUND_FAILED: {},
}

func (c *checker) quote(s *sentence) string { return c.words(s.first, s.end) }

// courtesy are the fixed forms that speak of the matter and claim nothing.
func (c *checker) courtesy(s *sentence) bool {
	text := strings.TrimRight(strings.ToLower(c.quote(s)), ".!? ")
	return courtesies[text]
}

var courtesies = map[string]bool{
	"please do not send such data":        true,
	"please do not send card data":        true,
	"thank you for telling us about this": true,
}

// future checks that a sentence promises nothing: only the desk's own next
// look and the person who has the case may be spoken of.
func (c *checker) future(s *sentence) {
	lookAgain := s.has(look|again) && c.hasFact(amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT)
	withPerson := s.any(person) && c.hasFact(amendsv1.ClaimKind_CLAIM_KIND_HANDED_TO_PERSON, amendsv1.ClaimKind_CLAIM_KIND_PERSON_CAN_REVIEW)
	aboutMoney := s.any(refund|cash|back|paid|moved) || len(s.amounts) > 0
	for i := s.first; i < s.end; i++ {
		switch {
		case c.is(i, promise):
			c.add("promise", c.words(max(s.first, i-2), i+3), reasonPromise, "")
		case c.is(i, relative):
			c.add("date", c.words(max(s.first, i-1), i+1), reasonDate, "")
		case c.is(i, will) && (aboutMoney || !lookAgain && !withPerson):
			c.add("promise", c.words(max(s.first, i-2), i+3), reasonPromise, "")
		}
	}
}

// required checks that the text states every fact it must carry. A person who
// writes chooses what to tell; what is told is checked like everything else.
func (c *checker) required() {
	if c.isWritten() {
		return
	}
	for _, f := range c.records.GetFacts() {
		if !c.told(f) {
			c.add("fact", strings.TrimPrefix(f.GetKind().String(), "CLAIM_KIND_"), reasonMissing, "")
		}
	}
}

func (c *checker) told(f *amendsv1.Claim) bool {
	for i := range c.sentences {
		s := &c.sentences[i]
		for _, q := range cues {
			if q.kind == f.GetKind() && q.says(c, s) && c.carries(s, f) {
				return true
			}
		}
	}
	return false
}

// carries checks that a sentence has the particulars of a fact.
func (c *checker) carries(s *sentence, f *amendsv1.Claim) bool {
	if f.GetAmount() != nil && !s.hasAmount(f.GetAmount()) {
		return false
	}
	switch f.GetKind() {
	case amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND:
		return len(s.counts) > 0
	case amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS, amendsv1.ClaimKind_CLAIM_KIND_REFUND_FAILED:
		open := f.GetRefundStatus() == amendsv1.RefundStatus_REFUND_STATUS_PENDING || f.GetRefundStatus() == amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION
		for _, id := range s.refunds {
			if id == f.GetRefundId() && (!open || s.any(pending)) {
				return true
			}
		}
		return false
	case amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT, amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY:
		for _, d := range s.dates {
			if f.GetTime() != nil && d.timed && d.is(f.GetTime().AsTime()) {
				return true
			}
		}
		return false
	case amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW:
		return len(s.days) > 0
	case amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART:
		return c.byMethod(s, f.GetMethod())
	default:
		return true
	}
}

// byMethod checks that a sentence names a payment method, and no other.
func (c *checker) byMethod(s *sentence, method string) bool {
	if method == "" || method == "payment" {
		return true
	}
	text := " " + strings.ToLower(c.quote(s))
	if !strings.Contains(text, " "+strings.ToLower(method)) {
		return false
	}
	return method != "card" || !strings.Contains(text, "gift")
}
