package verifier

import (
	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// checkAmount checks the amount at token i: a fact must state it, and what was
// read here must hold it.
func (c *checker) checkAmount(i int, s *sentence) {
	t := c.Tokens[i]
	words := c.words(max(c.begin(i), i-1), i+1)
	record := c.amountRecord(t.Money)
	switch {
	case t.Money == nil, record == "", c.low(i+1) == "%":
		c.add("amount", words, reasonAmount, "")
	case !c.amountFits(t.Money, s):
		c.add("amount", words, reasonAmount, record)
	default:
		c.add("amount", words, "", record)
	}
}

// amountRecord gives the look-up that holds an amount some fact states.
func (c *checker) amountRecord(m *amendsv1.Money) string {
	stated := false
	for _, f := range c.records.GetFacts() {
		stated = stated || f.GetAmount() != nil && same(f.GetAmount(), m)
	}
	if !stated {
		return ""
	}
	if c.seen.captures != nil {
		if same(c.seen.captures.Order.GetTotal(), m) {
			return c.seen.capturesCall
		}
		for _, p := range c.seen.captures.Captures {
			if same(p.GetAmount(), m) {
				return c.seen.capturesCall
			}
		}
	}
	for id, r := range c.seen.refunds {
		if same(r.GetAmount(), m) {
			return c.seen.refundCalls[id]
		}
	}
	return ""
}

// amountFits checks that an amount is said of the right thing: a refund's
// amount is that refund's, a hold's is that of a hold.
func (c *checker) amountFits(m *amendsv1.Money, s *sentence) bool {
	switch {
	case len(s.refunds) > 0:
		for _, id := range s.refunds {
			if r := c.seen.refunds[id]; r != nil && same(r.GetAmount(), m) {
				return true
			}
		}
		return false
	case s.has(hold | no | taken):
		return c.stated(m, amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN)
	case s.any(total):
		return c.stated(m, amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL)
	case s.any(duplicate):
		return c.stated(m, amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND)
	}
	return true
}

func (c *checker) stated(m *amendsv1.Money, kind amendsv1.ClaimKind) bool {
	for _, f := range c.records.GetFacts() {
		if f.GetKind() == kind && same(f.GetAmount(), m) {
			return true
		}
	}
	return false
}

// spelled checks a number word at token i: a count, or an amount in words.
func (c *checker) spelled(i int, s *sentence) {
	n := counts[c.low(i)]
	switch {
	case c.marks[i]&scale != 0:
		if i == 0 || c.Tokens[i-1].Kind != prose.Amount {
			c.add("amount", c.words(max(0, i-1), i+2), reasonAmount, "")
		}
	case units[c.low(i+1)]:
		c.add("duration", c.words(i, i+2), reasonPromise, "")
	case c.inAll(i) || c.low(i+1) == "more":
		c.checkCount(i, n, s)
	case c.isWritten() && c.low(i) == "one" && (c.low(i-1) == "which" || c.low(i+1) == "of"): // picks one, and counts none
	case c.low(i) != "once" && c.noun(i) != "":
		c.checkCount(i, n, s)
	}
}

// inAll reports "twice" and "thrice" of everything that was taken, and not
// "twice more".
func (c *checker) inAll(i int) bool {
	return (c.low(i) == "twice" || c.low(i) == "thrice") && c.low(i+1) != "more"
}

// noun gives the thing that a number at token i counts, or nothing.
func (c *checker) noun(i int) string {
	for j := i + 1; j <= i+3 && j < c.sentences[c.at[i]].end; j++ {
		switch {
		case c.low(j) == "times":
			return "times"
		case c.is(j, payment):
			return "payments"
		case c.is(j, hold):
			return "holds"
		case c.is(j, refund):
			return "refunds"
		case c.Tokens[j].Kind == prose.Amount:
			return ""
		}
	}
	return ""
}

// sum is what facts of one kind add up to, duplicates for each amount.
type sum struct {
	of       string
	minor    int64
	currency string
}

// checkCount checks a count against what the facts count.
func (c *checker) checkCount(i, n int, s *sentence) {
	noun := c.noun(i)
	var allowed []int
	extra := map[sum]int{}
	for _, f := range c.records.GetFacts() {
		switch f.GetKind() {
		case amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND:
			if (noun == "payments" || c.inAll(i)) && !s.any(duplicate&^c.marks[i]) && c.listed(f.GetAmount()) >= int(f.GetCount()) {
				allowed = append(allowed, int(f.GetCount()))
			}
		case amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND:
			extra[sum{"taken", f.GetAmount().GetMinor(), f.GetAmount().GetCurrency()}] += int(f.GetCount())
		case amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS:
			if noun == "refunds" {
				extra[sum{of: "refunds"}]++
			}
		case amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN:
			if noun == "holds" {
				extra[sum{of: "holds"}]++
			}
		default: // counts nothing
		}
	}
	for key, total := range extra {
		switch {
		case key.of != "taken":
			allowed = append(allowed, total)
		case c.inAll(i):
			allowed = append(allowed, total+1)
		case noun == "times" || noun == "payments" && s.any(duplicate) || c.low(i+1) == "more":
			allowed = append(allowed, total)
		}
	}
	if noun == "payments" && c.isWritten() && !s.any(duplicate) && c.taken() > 0 {
		allowed = append(allowed, c.taken())
	}
	for _, a := range allowed {
		if a == n {
			s.counts = append(s.counts, n)
			c.add("count", c.words(i, i+2), "", c.seen.stateCall)
			return
		}
	}
	c.add("count", c.words(i, i+2), reasonCount, "")
}

// taken is how many payments of the order the record says were captured.
func (c *checker) taken() int {
	n := 0
	for _, p := range c.records.GetPayment().GetCaptures() {
		if p.GetCaptured() {
			n++
		}
	}
	return n
}

// listed is how many payments of an amount the provider lists.
func (c *checker) listed(m *amendsv1.Money) int {
	n := 0
	if c.seen.captures != nil {
		for _, p := range c.seen.captures.Captures {
			if same(p.GetAmount(), m) {
				n++
			}
		}
	}
	return n
}

// checkDuration checks a number of days: only the days of the rule are a fact,
// and only as what the payment is outside of.
func (c *checker) checkDuration(i int, s *sentence) {
	n := atoi(c.Tokens[i].Raw)
	for _, f := range c.records.GetFacts() {
		if f.GetKind() == amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW && int(f.GetDays()) == n && s.any(outside) && (c.low(i+1) == "days" || c.low(i+1) == "day") &&
			f.GetDays()*24 == c.records.GetWindowHours() {
			s.days = append(s.days, n)
			c.add("days", c.words(i, i+2), "", c.seen.stateCall)
			return
		}
	}
	c.add("duration", c.words(i, i+2), reasonPromise, "")
}
