package verifier

import "github.com/amends-dev/amends/internal/prose"

// twisted reports that the words of a fact say in this order what the fact
// does not: "paid to you", "decided against us".
func (c *checker) twisted(first, end int) bool {
	for i := first; i < end; i++ {
		word, before, next := c.low(i), c.low(i-1), c.low(i+1)
		aboutOrder := matters[next] || matters[c.low(i+2)]
		switch {
		case toward[before] && (word == "us" || word == "our"):
			return true
		case toward[before] && (word == "you" || word == "your") && (word == "you" || !aboutOrder):
			return true
		case before == "for" && (word == "it" || word == "this" || word == "that" || word == "these" || word == "those") && c.low(i-2) != "ask" && !aboutOrder:
			return true
		case word == "you" && (next == "have" || next == "had") && c.low(i+2) != "been" && c.low(i+2) != "paid":
			return true
		case word == "paid" && (!c.byCustomer(i) || next == "you" || next == "to" || next == "for" && !matters[c.low(i+3)]):
			return true
		case word == "owed" && before != "than", word == "decided" && before != "been" && next != "against":
			return true
		case (word == "against" || word == "declined") && next != "" && !c.request(i+1, end):
			return true
		}
	}
	return false
}

var (
	toward  = set("to in on with at from by for of")
	matters = set("order request case payment payments message")
)

// byCustomer reports that "paid" at token i is said of the order's payment.
func (c *checker) byCustomer(i int) bool {
	switch c.low(i - 1) {
	case "was", "you":
		return true
	case "have", "had", "been":
		return c.low(i-2) == "you" && c.low(i-1) != "been"
	}
	return false
}

// request reports that the part ends at token i, or names the request there.
func (c *checker) request(i, end int) bool {
	switch w := c.low(i); {
	case w == "it" || w == "this" || w == "that":
		i++
	case (w == "your" || w == "the") && (c.low(i+1) == "request" || c.low(i+1) == "case"):
		i += 2
	}
	return i >= end || c.Tokens[i].Kind == prose.Break || c.low(i) == "," || c.low(i) == "and" || c.low(i-1) == "this" && matters[c.low(i)]
}

// moreRefunds reports a part that speaks of more refunds than it names, or of
// one that is both done and open.
func (c *checker) moreRefunds(s *sentence) bool {
	said := 0
	for i := s.first; i < s.end; i++ {
		switch word := c.low(i); {
		case c.is(i, refund):
			said++
		case counts[word] > 0, word == "first", word == "second", word == "third", word == "pending" && c.says(s, done):
			return true
		}
	}
	return said > len(s.refunds)
}
