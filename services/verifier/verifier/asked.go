package verifier

import (
	"strings"

	"github.com/amends-dev/amends/internal/prose"
)

// clause is the tokens [first, end) of a sentence.
type clause struct{ first, end int }

var separators = map[string]bool{",": true, ":": true, "(": true, ")": true, "/": true}

// parting are the words that begin another clause of a question.
var parting = set("and or but so because since as after before while until unless if though although however yet")

// clauses parts a question at commas, dashes, brackets and parting words.
func (c *checker) clauses(s *sentence) []clause {
	var out []clause
	first := s.first
	cut := func(i, next int) {
		if c.plainly(first, i) != "" {
			out = append(out, clause{first, i})
		}
		first = next
	}
	for i := s.first; i < s.end; i++ {
		t := c.Tokens[i]
		switch {
		case t.Kind == prose.Mark && separators[t.Low]:
			cut(i, i+1)
		case i > s.first && (parting[t.Low] || strings.Contains(c.gap(i), "-")):
			cut(i, i)
		}
	}
	cut(s.end, s.end)
	return out
}

// asks reports that a sentence is a question or a request, whole: it asks for
// something, and none of its clauses states anything.
func (c *checker) asks(s *sentence) bool {
	question := c.Tokens[s.end-1].Raw == "?"
	asked := false
	for _, part := range c.clauses(s) {
		switch {
		case c.isNeutral(part.first, part.end):
		case c.opens(part, question, asked):
			asked = true
		case !asked && c.leads(part), c.condition(part):
		case asked && c.phrase(part):
		default:
			return false
		}
	}
	return asked
}

// opens reports a clause that begins like a question or a request.
func (c *checker) opens(p clause, question, more bool) bool {
	i := p.first
	if more && (c.low(i) == "and" || c.low(i) == "or" || c.low(i) == "but" || c.low(i) == "so") {
		i++
	}
	polite := false
	for politeness[c.low(i)] && i < p.end {
		polite = polite || c.low(i) == "please" || c.low(i) == "kindly"
		i++
	}
	if polite && c.low(i) == "do" && c.low(i+1) == "not" {
		return true
	}
	if requestVerbs[c.low(i)] && (polite || more) {
		return true
	}
	if interrogatives[c.low(i)] {
		return question || more || c.is(i, can|will) && c.low(i+1) == "you"
	}
	return question && !polite && (c.low(i) == "in" || c.low(i) == "on" || c.low(i) == "at" || c.low(i) == "from" || c.low(i) == "with" || c.low(i) == "for" || c.low(i) == "by") &&
		(c.low(i+1) == "which" || c.low(i+1) == "what" || c.low(i+1) == "whose" || c.low(i+1) == "whom")
}

// leads reports what may stand before a question: what it is about or for.
func (c *checker) leads(p clause) bool {
	switch c.low(p.first) {
	case "about", "regarding", "for", "to":
		return c.phrase(p)
	}
	return false
}

// condition reports a clause that says when or what for, and not that.
func (c *checker) condition(p clause) bool {
	switch c.low(p.first) {
	case "if", "unless":
		return true
	case "before", "so":
		i := p.first + 1
		if c.low(i) == "that" {
			i++
		}
		return (c.low(i) == "we" || c.low(i) == "i") && c.low(i+1) == "can"
	}
	return false
}

// phrase reports a clause without a verb of its own: more of what is asked for.
func (c *checker) phrase(p clause) bool {
	for i := p.first; i < p.end; i++ {
		switch w := c.low(i); {
		case auxiliaries[w] && c.low(i+1) != "you", subjects[w] && i <= p.first+1:
			return false
		case (w == "have" || w == "do") && c.low(i+1) != "you" && c.low(i-1) != "you" && c.low(i-1) != "to":
			return false
		}
	}
	return true
}

// subjects begin a statement.
var subjects = set("we i it they he she everything nothing all this that these those you there")

// deskVerbs are what people of the desk may say that they can do.
var deskVerbs = set("look check find help understand continue compare match identify contact call reach ask see use clarify proceed decide review")

// asked checks a question. It asserts nothing by itself; its numbers were
// checked like all others, and what it takes for granted must not be that the
// money goes back or how the case ends.
func (c *checker) asked(s *sentence) {
	c.refundWording(s)
	if _, affirmed := c.root(s); affirmed && len(s.refunds) == 0 {
		c.add("refund_wording", c.quote(s), reasonNotInRecord, "") // a question names the refund it is about
	}
	c.foreseen(s)
	for _, p := range c.clauses(s) {
		if c.isNeutral(p.first, p.end) {
			continue
		}
		if reason, word := c.wording(p, s); reason != "" {
			c.add("statement", c.naming(word, s), reason, "")
			return
		}
	}
	ofPayment := s.any(payment | order | taken | paid | refund | total | hold | duplicate)
	if len(s.amounts) > 0 && !ofPayment || c.takesForGranted(s) {
		c.add("statement", c.quote(s), reasonStatement, "")
	}
}

// wording says which word of a clause no question may have, and why.
func (c *checker) wording(p clause, s *sentence) (reason, word string) {
	unknown := 0
	for i := p.first; i < p.end; i++ {
		if c.Tokens[i].Kind != prose.Word {
			continue
		}
		w := c.low(i)
		switch {
		case w == "yours" && s.any(order|payment) && auxiliaries[c.low(s.first)]: // "Is this order yours?"
		case outcomes[w]:
			return reasonStatement, w
		case c.knows(w):
			unknown = 0
		case unknown == 0 && slots[c.low(i-1)] && i > s.first, unknown == 1 && !strings.HasSuffix(w, "ed"):
			unknown++ // the name of a thing, such as a ceramic lamp
		default:
			return reasonLanguage, w
		}
	}
	return "", ""
}

func (c *checker) knows(word string) bool {
	return joints[word] || asking[word] || deskVerbs[word] || months[word] > 0 || units[word] || counts[word] > 0 || lexicon[word]&(refund|pending) != 0 || parting[word]
}

// foreseen checks that a question promises nothing.
func (c *checker) foreseen(s *sentence) {
	aboutMoney := s.any(refund|cash|back) || len(s.amounts) > 0
	for i := s.first; i < s.end; i++ {
		switch {
		case c.is(i, relative):
			c.add("date", c.naming(c.low(i), s), reasonDate, "")
		case c.is(i, promise) && (aboutMoney || !strings.HasPrefix(c.low(i), "arriv")):
			c.add("promise", c.naming(c.low(i), s), reasonPromise, "")
		case c.is(i, will) && (aboutMoney || c.low(i+1) != "you" && c.low(i+1) != "it" || c.low(i) != "would" && !requestVerbs[c.low(i+2)] && c.low(i+2) != "please"):
			c.add("promise", c.naming(c.low(i), s), reasonPromise, "")
		}
	}
}

// takesForGranted reports what a question must not contain: an act of the
// desk, something said to be known, or money that is with the customer.
func (c *checker) takesForGranted(s *sentence) bool {
	aboutPayment := s.any(payment|taken|paid) || s.any(order)
	for i := s.first; i < s.end; i++ {
		word, next := c.low(i), c.low(i+1)
		switch {
		case (word == "we" || word == "i") && !c.deskMay(i):
			return true
		case factives[word] && c.claimed(i, s.end):
			return true
		case (word == "pay" || word == "paid" || word == "paying" || word == "gave" || word == "given") && (next == "you" || next == "to" && c.low(i+2) == "you"):
			return true
		case word == "you" && (c.rightly(i+1) || auxiliaries[next] && c.rightly(i+2)):
			return true
		case word == "with" && next == "you", word == "gift" && next != "card" && next != "cards":
			return true
		case word == "us" && (pays[next] || next == "to" && !deskVerbs[c.low(i+2)]):
			return true
		case (word == "us" || word == "our") && (c.low(i-1) == "by" || c.low(i-1) == "from") && (aboutPayment || s.any(cash|amountWord)):
			return true
		case gains[word] && c.gained(i):
			return true
		case (word == "return" || c.is(i, cancelled) && c.low(i-1) != "you") && s.any(payment|cash|amountWord):
			return true
		case (word == "check" || word == "see") && (word == "check" || s.any(cash)) && c.places(i+1, s.end):
			return true
		case toward[word] && next == "your" && c.places(i+2, min(i+4, s.end)) && (word == "to" && c.low(i-1) != "access" || (word == "in" || word == "on") && !aboutPayment):
			return true
		case c.is(i, cash) && word != "paid" && !s.any(taken|paid) && !s.has(payment) && !paysIn(c.plainly(s.first, s.end)):
			return true
		}
	}
	return false
}

var (
	pays  = set("pay paying paid return give send")
	gains = set("receive received get got have take took keep kept")
)

// gained reports that it, or a payment, is what somebody got at token i: "did
// you receive the full amount", but not "an email about the payment".
func (c *checker) gained(i int) bool {
	if c.low(i+1) == "it" {
		return c.low(i-2) != "if"
	}
	if word := c.low(i); word == "have" || word == "take" || word == "took" {
		return false
	}
	for j := i + 1; j < min(i+4, len(c.Tokens)); j++ {
		if c.low(j) == "of" || c.low(j) == "about" || c.low(j) == "for" {
			return false
		}
		if c.is(j, payment|cash|amountWord) || c.Tokens[j].Kind == prose.Amount {
			return c.low(j+1) != "confirmation"
		}
	}
	return false
}

// deskMay reports "we can look", "can we call" and "we need".
func (c *checker) deskMay(i int) bool {
	return c.low(i+1) == "need" || c.is(i+1, can) && deskVerbs[c.low(i+2)] || c.is(i-1, can) && deskVerbs[c.low(i+1)]
}

// claimed reports that what is known, seen or remembered at token i is a
// statement: "know that it is", "know you have".
func (c *checker) claimed(i, end int) bool {
	j := i + 1
	if c.low(j) == "that" {
		j++
	}
	switch c.low(j) {
	case "who", "whether", "if", "what", "which", "where", "when", "whose":
		return j > i+1
	}
	if subjects[c.low(j)] && j+1 < end && c.Tokens[j+1].Kind == prose.Word && !slots[c.low(j+1)] && c.low(j) != "this" && c.low(j) != "these" && c.low(j) != "those" {
		return true
	}
	for ; j < end; j++ {
		if c.low(j) == "and" || c.low(j) == "or" || c.low(j) == "," {
			return false
		}
		if auxiliaries[c.low(j)] || c.low(j) == "have" {
			return true
		}
	}
	return false
}

func (c *checker) rightly(i int) bool {
	return c.low(i) == "right" || c.low(i) == "correct"
}

// places reports an account or wallet among tokens [i, j).
func (c *checker) places(i, j int) bool {
	for ; i < j; i++ {
		switch c.low(i) {
		case "account", "accounts", "wallet", "balance", "card":
			return true
		}
	}
	return false
}

// paysIn reports a question about money that the customer spends.
func paysIn(text string) bool {
	return strings.Contains(text+" ", "you pay ") || strings.Contains(text, "to pay ")
}
