package verifier

import (
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Reason codes of an unsupported claim.
const (
	reasonAmount         = "unsupported_amount"
	reasonUnknownRefund  = "unknown_refund_id"
	reasonNotInRecord    = "refund_not_in_record"
	reasonOverclaimed    = "status_overclaimed"
	reasonHolding        = "refund_wording_in_holding"
	reasonApproval       = "approval_claimed"
	reasonDate           = "date_unsupported"
	reasonIdentifier     = "payment_identifier"
	reasonCard           = "card_digits"
	reasonMissing        = "missing_fact"
	reasonPromise        = "promise_unsupported"
	reasonInstruction    = "instruction_echo"
	reasonCount          = "count_unsupported"
	reasonClaim          = "claim_not_in_record"
	reasonStatement      = "unsupported_statement"
	reasonLanguage       = "language_unsupported"
	reasonKind           = "kind_mismatch"
	reasonOrder          = "order_mismatch"
	reasonTooManyRefunds = "too_many_refunds"
)

// maxChecks is how many checks a verification carries.
const maxChecks = 64

// checker checks one draft.
type checker struct {
	reading
	slice   *amendsv1.VerifySlice
	records *amendsv1.CaseFacts
	seen    own
	good    []*amendsv1.ClaimCheck
	bad     []*amendsv1.ClaimCheck
}

// check checks a text against the records. What is unsupported comes first, so
// that no bound can cut it off.
func check(v *amendsv1.VerifySlice, text reading, seen own) (checks []*amendsv1.ClaimCheck, verified bool) {
	c := &checker{reading: text, slice: v, records: v.GetRecords(), seen: seen}
	c.form()
	if c.isWritten() {
		c.characters()
	}
	c.numbers()
	c.namedRefunds()
	for i := range c.sentences {
		c.statement(&c.sentences[i])
	}
	c.required()
	checks = slices.Concat(c.bad, c.good)
	return checks[:min(len(checks), maxChecks)], len(c.bad) == 0
}

// add records one check; no reason means that record supports the claim.
func (c *checker) add(what, found, reason, record string) {
	check := &amendsv1.ClaimCheck{What: what, Found: clip(found), Supported: reason == "", Reason: reason, Record: record}
	if reason == "" {
		c.good = append(c.good, check)
		return
	}
	c.bad = append(c.bad, check)
}

func (c *checker) hasFact(kinds ...amendsv1.ClaimKind) bool {
	return slices.ContainsFunc(c.records.GetFacts(), func(f *amendsv1.Claim) bool { return slices.Contains(kinds, f.GetKind()) })
}

// form checks what the text is, before what it says.
func (c *checker) form() {
	d := c.slice.GetDraft()
	if d.GetKind() != c.slice.GetKind() {
		c.add("kind", d.GetKind().String(), reasonKind, "")
	}
	if c.Hidden.Invisible || c.Hidden.Control || c.Hidden.Markup || c.Hidden.Ambiguous {
		c.add("form", "hidden characters, control characters or markup", reasonInstruction, "")
	}
	if !strings.HasPrefix(d.GetLanguage(), "en") {
		c.add("language", d.GetLanguage(), reasonLanguage, "")
	}
	for i, t := range c.Tokens {
		switch {
		case t.Kind == prose.Word && strings.ContainsFunc(t.Raw, func(r rune) bool { return r >= 0x80 }):
			c.add("language", c.words(i, i+1), reasonLanguage, "")
			return
		case c.marks[i]&instruction != 0 || t.Low == "#" && c.low(i+1) == "#":
			c.add("instruction", c.words(i, i+3), reasonInstruction, "")
		case c.marks[i]&approve != 0 && !c.isHoldWord(i):
			c.add("approval", c.words(i-2, i+2), reasonApproval, "")
		}
	}
}

// isHoldWord tells "authorised" of a hold from "authorised" of a decision.
func (c *checker) isHoldWord(i int) bool {
	s := c.sentences[c.at[i]]
	return strings.HasPrefix(c.low(i), "authori") && s.any(hold|payment) && !s.any(refund)
}

// numbers accounts for every number of the text.
func (c *checker) numbers() {
	for i := 0; i < len(c.Tokens); {
		i = c.explain(i)
	}
}

// explain checks the number at token i, if it is one, and gives the next
// token.
func (c *checker) explain(i int) int {
	t := c.Tokens[i]
	s := &c.sentences[c.at[i]]
	if end := c.cardRun(i); end > i {
		c.add("card_digits", "a run of digits", reasonCard, "")
		return end
	}
	if t.Kind == prose.Word && (counts[t.Low] > 0 || c.marks[i]&scale != 0) {
		c.spelled(i, s)
		return i + 1
	}
	if d, end, ok := c.date(i); ok && !c.isOrder(i) {
		c.checkDate(d, i, end, s)
		return end
	}
	switch {
	case t.Kind == prose.Amount:
		c.checkAmount(i, s)
	case t.Digits == 0 && t.Kind != prose.Ident, slices.Contains(s.refunds, t.Raw):
	case c.isOrder(i):
		c.add("order", t.Raw, "", c.seen.stateCall)
	case c.isInternal(t):
		c.add("payment_identifier", t.Raw, reasonIdentifier, "")
	case t.Kind == prose.Ident && t.Digits == 0:
		c.add("payment_identifier", t.Raw, reasonIdentifier, "")
	case c.isCardTail(i):
		c.add("card_digits", "digits of a payment method", reasonCard, "")
	case units[c.low(i+1)] || c.low(i+1) == "-":
		c.checkDuration(i, s)
	case t.Plain() && c.noun(i) != "":
		c.checkCount(i, atoi(t.Raw), s)
	default:
		c.add("number", c.words(i, i+1), reasonAmount, "")
	}
	return i + 1
}

// isOrder reports that token i is the case's order.
func (c *checker) isOrder(i int) bool {
	t := c.Tokens[i]
	if c.records.GetOrderId() == "" || t.Raw != c.records.GetOrderId() || t.Kind == prose.Amount {
		return false
	}
	return c.low(i-1) == "order" || c.low(i-1) == "#" || c.low(i-1) == "number" || !c.isCardTail(i)
}

func (c *checker) isInternal(t prose.Token) bool {
	if t.Kind == prose.Ident && prefixed(t.Low, internalPrefixes) || slices.Contains(c.records.GetClaimedPayments(), t.Raw) {
		return true
	}
	return slices.ContainsFunc(c.captures(), func(p *amendsv1.Capture) bool {
		return strings.EqualFold(p.GetPaymentId(), t.Raw) || strings.EqualFold(p.GetMethod(), t.Raw)
	})
}

// captures gives the captures of the record and those read here.
func (c *checker) captures() []*amendsv1.Capture {
	if c.seen.captures == nil {
		return c.records.GetPayment().GetCaptures()
	}
	return slices.Concat(c.records.GetPayment().GetCaptures(), c.seen.captures.Captures)
}

// isCardTail reports digits that end the name of a payment method, or that the
// text calls the end of a card.
func (c *checker) isCardTail(i int) bool {
	t := c.Tokens[i]
	if !t.Plain() || t.Digits < 4 {
		return false
	}
	if c.low(i-1) == "ending" || c.low(i-1) == "card" || c.low(i-1) == "in" && c.low(i-2) == "ending" {
		return true
	}
	return slices.ContainsFunc(c.captures(), func(p *amendsv1.Capture) bool {
		tail := p.GetMethod()[strings.LastIndexFunc(p.GetMethod(), func(r rune) bool { return r < '0' || r > '9' })+1:]
		return tail != "" && strings.HasSuffix(t.Raw, tail)
	})
}

// cardRun gives the end of a run of digits as long as a card number, or i.
func (c *checker) cardRun(i int) int {
	digits, j := 0, i
	for j < len(c.Tokens) && c.Tokens[j].Money == nil && (c.Tokens[j].Plain() || c.Tokens[j].Kind == prose.Ident && c.Tokens[j].Digits >= 12) {
		digits += c.Tokens[j].Digits
		j++
	}
	if digits >= 12 && !slices.Contains(c.sentences[c.at[i]].refunds, c.Tokens[i].Raw) && !c.isOrder(i) {
		return j
	}
	return i
}
