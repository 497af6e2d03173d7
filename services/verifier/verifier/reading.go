package verifier

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// reading is a draft's text taken apart: tokens, and sentences with what each
// speaks of.
type reading struct {
	prose.Text
	marks     []mark // per token
	sentences []sentence
	// at is the sentence of each token.
	at []int
}

// sentence is the tokens [first, end).
type sentence struct {
	first, end int
	marks      mark
	amounts    []*amendsv1.Money
	refunds    []string
	dates      []date
	counts     []int
	days       []int
}

func (s sentence) has(m mark) bool { return s.marks&m == m }

func (s sentence) any(m mark) bool { return s.marks&m != 0 }

func (s sentence) hasAmount(m *amendsv1.Money) bool {
	return slices.ContainsFunc(s.amounts, func(a *amendsv1.Money) bool { return same(a, m) })
}

func same(a, b *amendsv1.Money) bool {
	return a.GetMinor() == b.GetMinor() && a.GetCurrency() == b.GetCurrency()
}

// contractions hide a not or a will.
var contractions = strings.NewReplacer("n't", " not", "n’t", " not", "'ll", " will", "’ll", " will")

// read takes a text apart. refunds are the references that count as one
// whatever they look like.
func read(text string, refunds []string) reading {
	r := reading{Text: prose.Read(contractions.Replace(text))}
	r.marks, r.at = make([]mark, len(r.Tokens)), make([]int, len(r.Tokens))
	start := 0
	for i, t := range r.Tokens {
		if t.Kind == prose.Word {
			r.marks[i] = lexicon[t.Low]
		}
		r.at[i] = len(r.sentences)
		if t.Kind == prose.Break || i == len(r.Tokens)-1 {
			r.sentences = append(r.sentences, r.sentence(start, i+1, refunds))
			start = i + 1
		}
	}
	return r
}

func (r *reading) sentence(first, end int, refunds []string) sentence {
	s := sentence{first: first, end: end}
	for i := first; i < end; i++ {
		s.marks |= r.marks[i]
		t := r.Tokens[i]
		switch {
		case t.Money != nil:
			s.amounts = append(s.amounts, t.Money)
		case isRefund(t, refunds):
			s.refunds = append(s.refunds, t.Raw)
		}
	}
	return s
}

func isRefund(t prose.Token, known []string) bool {
	return t.Kind == prose.Ident && prefixed(t.Low, refundPrefixes) || slices.Contains(known, t.Raw)
}

func prefixed(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

func (r *reading) low(i int) string {
	if i < 0 || i >= len(r.Tokens) {
		return ""
	}
	return r.Tokens[i].Low
}

func (r *reading) is(i int, m mark) bool { return i >= 0 && i < len(r.marks) && r.marks[i]&m != 0 }

// words quotes the tokens [i, j) for the record.
func (r *reading) words(i, j int) string {
	i = max(i, 0)
	if i >= len(r.Tokens) || i >= j {
		return ""
	}
	return r.Normalised()[r.Tokens[i].Start:r.Tokens[min(j, len(r.Tokens))-1].End]
}

// clip cuts what a check quotes to what the record takes.
func clip(s string) string {
	for n := 250; len(s) > 256; n-- {
		if utf8.RuneStart(s[n]) {
			s = s[:n]
		}
	}
	return s
}

// between are the words that may stand between a not and what it denies: "no
// refund", "nothing has been refunded", but not "no doubt your refund".
var between = map[string]bool{
	"a": true, "an": true, "the": true, "any": true, "earlier": true, "other": true, "previous": true, "further": true, "second": true,
	"been": true, "was": true, "were": true, "has": true, "have": true, "is": true, "be": true, "yet": true, "record": true, "of": true,
	"money": true, "payment": true,
}

// denied reports that token i is what a not before it denies.
func (r *reading) denied(i int) bool {
	for j := i - 1; j >= r.begin(i) && j >= i-5; j-- {
		if r.is(j, no) {
			return true
		}
		if !between[r.low(j)] {
			return false
		}
	}
	return false
}

// begin gives the first token of the sentence of token i.
func (r *reading) begin(i int) int { return r.sentences[r.at[i]].first }
