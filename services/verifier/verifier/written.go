package verifier

import (
	"slices"
	"strings"
	"unicode"

	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// isWritten reports a text in a person's own words.
func (c *checker) isWritten() bool {
	return c.slice.GetKind() == amendsv1.ReplyKind_REPLY_KIND_WRITTEN
}

// written checks a sentence of a person by what it does: it is courteous, it
// asks, or it states. Whatever is none of these is refused.
func (c *checker) written(s *sentence) {
	switch {
	case c.plainly(s.first, s.end) == "":
	case c.isNeutral(s.first, s.end):
	case c.asks(s):
		c.asked(s)
	default:
		c.refundWording(s)
		c.future(s)
		c.claims(s)
		c.composed(s)
	}
}

// characters refuses what the words of a person have no need of: a reader may
// see more in it than the tokens say.
func (c *checker) characters() {
	for _, r := range c.slice.GetDraft().GetText() {
		switch {
		case r == '\n', r == '\r', r == '\t', r >= ' ' && r < 0x7f && !strings.ContainsRune("*+=@[]^`{|}~<>\\&", r):
		case unicode.Is(unicode.Sc, r), strings.ContainsRune("\u00a0‘’“”–—…", r):
		default:
			c.add("character", string(r), reasonStatement, "")
			return
		}
	}
	for i := 1; i < len(c.Tokens); i++ { // "Hello.We have" hides where a sentence ends
		numeric := c.Tokens[i].Digits > 0 || c.Tokens[i].Kind == prose.Break
		if strings.ContainsRune(c.gap(i), '.') && !numeric {
			c.add("form", c.words(i-1, i+1), reasonStatement, "")
		}
	}
}

// gap gives what stands between token i and the one before it.
func (c *checker) gap(i int) string {
	return c.Normalised()[c.Tokens[i-1].End:c.Tokens[i].Start]
}

// plainly gives the words of tokens [i, j), commas and breaks left out.
func (c *checker) plainly(i, j int) string {
	var words []string
	for ; i < j; i++ {
		if t := c.Tokens[i]; t.Kind != prose.Break && t.Low != "," {
			words = append(words, t.Low)
		}
	}
	return strings.Join(words, " ")
}

func (c *checker) isNeutral(i, j int) bool {
	text := strings.TrimPrefix(c.plainly(i, j), "and ")
	if rest, ok := strings.CutPrefix(text, "im "); ok {
		text = "i am " + rest
	}
	return neutral[text]
}

// claims checks every fact that a sentence states and gives those that the
// record holds.
func (c *checker) claims(s *sentence) {
	for _, q := range cues {
		if _, isRefund := refundKinds[q.kind]; !isRefund && !c.hasFact(q.kind) && q.says(c, s) {
			c.add("claim", c.quote(s), reasonClaim, "")
		}
	}
}

// composed checks that a statement is made of facts of the record and of nothing
// else: each of its parts states a fact, in that fact's own words.
func (c *checker) composed(s *sentence) {
	first := s.first
	for i := s.first; i <= s.end; i++ {
		if i < s.end && !contrasts[c.low(i)] {
			continue
		}
		if reason, word := c.part(c.courteous(first, i), i, s); reason != "" {
			c.add("statement", c.naming(word, s), reason, "")
			return
		}
		first = i + 1
	}
}

// courteous gives where the part [i, j) goes on behind a courtesy that opens
// it.
func (c *checker) courteous(i, j int) int {
	for k := i; k < j; k++ {
		if c.low(k) == "," && c.isNeutral(i, k) {
			return k + 1
		}
	}
	return i
}

// part says what is wrong with a part of a statement, and which word is.
func (c *checker) part(first, end int, whole *sentence) (reason, word string) {
	if c.plainly(first, end) == "" || c.isNeutral(first, end) {
		return "", ""
	}
	s := c.sentence(first, end, c.refundsIn(whole, first, end))
	s.dates, s.counts, s.days = whole.dates, whole.counts, whole.days
	var facts []template
	nots := 0
	for _, q := range cues {
		if c.hasFact(q.kind) && q.says(c, &s) && (q.kind != amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART || c.particular(q.kind, &s)) {
			facts = append(facts, templates[q.kind])
			nots += templates[q.kind].nots
		}
	}
	_, affirmed := c.root(&s)
	if len(facts) == 0 || affirmed && c.moreRefunds(&s) {
		reason = reasonStatement
	}
	for i := first; i < end; i++ {
		t := c.Tokens[i]
		if t.Kind != prose.Word {
			continue
		}
		if c.is(i, no) {
			nots--
		}
		switch {
		case joints[t.Low] || months[t.Low] > 0 || slices.ContainsFunc(facts, func(f template) bool { return f.words[t.Low] }):
		case !english(t.Low):
			return reasonLanguage, t.Raw
		case reason == "":
			reason, word = reasonStatement, t.Raw
		}
	}
	if (nots < 0 || c.twisted(first, end)) && reason == "" {
		reason = reasonStatement
	}
	return reason, word
}

// refundsIn gives the refunds of a sentence that its tokens [i, j) name.
func (c *checker) refundsIn(s *sentence, i, j int) []string {
	var out []string
	for ; i < j; i++ {
		if slices.Contains(s.refunds, c.Tokens[i].Raw) {
			out = append(out, c.Tokens[i].Raw)
		}
	}
	return out
}

// particular reports that a sentence has the particulars of a fact of a kind.
func (c *checker) particular(kind amendsv1.ClaimKind, s *sentence) bool {
	return slices.ContainsFunc(c.records.GetFacts(), func(f *amendsv1.Claim) bool { return f.GetKind() == kind && c.carries(s, f) })
}

// naming quotes a sentence, behind the word that is wrong with it.
func (c *checker) naming(word string, s *sentence) string {
	if word == "" {
		return c.quote(s)
	}
	return "the word " + word + " in: " + c.quote(s)
}

// english reports a word of the verifier's vocabulary.
func english(word string) bool {
	if joints[word] || asking[word] || deskVerbs[word] || contrasts[word] || lexicon[word] != 0 || months[word] > 0 || units[word] || counts[word] > 0 {
		return true
	}
	for _, t := range templates {
		if t.words[word] {
			return true
		}
	}
	return false
}
