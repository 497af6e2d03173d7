package casefile

import (
	"slices"
	"strings"

	"github.com/bojanz/currency"

	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// word is one word or value of a text.
type word struct {
	raw, low, stem string
	// value, if set, is a number in plain decimals: 1000, 999.99.
	value string
	money *amendsv1.Money
	// sentence and clause number the parts it stands in; denied says that its
	// clause holds a negation.
	sentence, clause int
	denied           bool
}

// text is a text as a list of words.
type text []word

// readText takes a text apart into words, clause by clause.
func readText(s string) text {
	tokens := prose.Read(s).Tokens
	var out text
	sentence, clause := 0, 0
	for i, t := range tokens {
		switch {
		case t.Kind == prose.Break:
			sentence++
			clause++
		case t.Kind == prose.Mark:
			if strings.ContainsAny(t.Low, ",():") {
				clause++
			}
		case t.Kind == prose.Word && currencyWord(t) && (amountAt(tokens, i-1) || amountAt(tokens, i+1)):
			// part of the amount
		case linkers[t.Low], t.Low == "and" && i+1 < len(tokens) && starters[tokens[i+1].Low]:
			clause++
			out = append(out, wordOf(t, sentence, clause))
		default:
			out = append(out, wordOf(t, sentence, clause))
		}
	}
	denied := map[int]bool{}
	for _, w := range out {
		denied[w.clause] = denied[w.clause] || negators[w.low]
	}
	for i := range out {
		out[i].denied = denied[out[i].clause]
	}
	return out
}

func amountAt(tokens []prose.Token, i int) bool {
	return i >= 0 && i < len(tokens) && tokens[i].Kind == prose.Amount
}

var currencyWords = fieldSet(`rs inr rupee rupees lakh lakhs lac crore crores yen dollar dollars euro euros pound pounds quid won`)

func currencyWord(t prose.Token) bool {
	return currencyWords[t.Low] || len(t.Raw) == 3 && currency.IsValid(t.Raw)
}

func wordOf(t prose.Token, sentence, clause int) word {
	low := strings.ToLower(t.Raw)
	w := word{raw: t.Raw, low: low, stem: stemOf(low), sentence: sentence, clause: clause, money: t.Money}
	switch {
	case t.Money != nil:
		w.value = decimal(t.Money)
	case t.Kind == prose.Number || t.Kind == prose.Amount:
		w.value = plainNumber(t.Raw)
	case numerals[low] != "":
		w.value = numerals[low]
	}
	return w
}

// decimal writes an amount in major units without trailing zeros.
func decimal(m *amendsv1.Money) string {
	a, err := currency.NewAmountFromInt64(m.GetMinor(), m.GetCurrency())
	if err != nil {
		return ""
	}
	return trimZeros(a.Number())
}

// plainNumber reads a written number without a currency: 1,00,000 is 100000.
func plainNumber(s string) string {
	if strings.Count(s, ".") > 1 {
		return ""
	}
	return trimZeros(strings.ReplaceAll(s, ",", ""))
}

func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s = strings.TrimLeft(s, "0"); s == "" || s[0] == '.' {
		s = "0" + s
	}
	return s
}

// phraseAt gives the members of groups that begin at word i, the longest first.
func (t text) phraseAt(i int) []phrase {
	var out []phrase
	for _, p := range lexicon[t[i].stem] {
		if t.runs(i, p.words) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b phrase) int { return len(b.words) - len(a.words) })
	return out
}

func (t text) runs(i int, words []string) bool {
	if i+len(words) > len(t) {
		return false
	}
	for j, w := range words {
		if t[i+j].stem != w || t[i+j].sentence != t[i].sentence {
			return false
		}
	}
	return true
}

// unit is one thing a fact says: a value, a word, or a phrase of groups.
type unit struct {
	text   string
	groups []string
	stem   string
	value  *word
	// polar: affirming and denying are told apart; denied is which it is.
	polar, denied bool
	// words are the units of a phrase's words, which say it as well.
	words []unit
}

// units takes a fact apart, into phrases where it can.
func (t text) units() []unit { return t.unitsOf(4) }

// unitsOf takes a fact apart into phrases of at most so many words.
func (t text) unitsOf(most int) []unit {
	var out []unit
	for i := 0; i < len(t); {
		w := t[i]
		found := slices.DeleteFunc(t.phraseAt(i), func(p phrase) bool { return len(p.words) > most })
		small := stopWords[w.low] || negators[w.low]
		switch {
		case w.value != "" || strings.ContainsAny(w.raw, "0123456789"):
			out = append(out, unit{text: w.raw, value: &w})
			i++
		case len(found) > 0 && (len(found[0].words) > 1 || !small):
			u := t.unit(i, found)
			out = append(out, u)
			i += len(found[0].words)
		case small:
			i++
		default:
			out = append(out, unit{text: w.raw, stem: w.stem})
			i++
		}
	}
	return out
}

// unit is what the longest of the phrases at word i says.
func (t text) unit(i int, found []phrase) unit {
	n := len(found[0].words)
	u := unit{text: t.quote(i, i+n), stem: t[i].stem, denied: t[i].denied && !found[0].denies, polar: true}
	for _, p := range found {
		if len(p.words) == n {
			u.groups = append(u.groups, p.group)
			u.polar = u.polar && p.polar
		}
	}
	if n > 1 {
		u.words = t[i : i+n].unitsOf(1)
	}
	return u
}

func (t text) quote(i, j int) string {
	words := make([]string, 0, j-i)
	for _, w := range t[i:j] {
		words = append(words, w.raw)
	}
	return strings.Join(words, " ")
}

// meets reports that the text says a unit. Exactly tells money that was
// refunded from a refund that is spoken of; a fact is content with either.
func (t text) meets(u unit, exactly bool) bool {
	if u.value != nil {
		return slices.ContainsFunc(t, u.value.equals)
	}
	for i := range t {
		if len(u.groups) == 0 {
			if t[i].stem == u.stem {
				return true
			}
			continue
		}
		for _, p := range t.phraseAt(i) {
			if !slices.Contains(u.groups, p.group) {
				continue
			}
			if exactly && p.group == "refund" && done(u.text) && !done(t[i].low) && len(p.words) == 1 {
				continue
			}
			denied := t[i].denied && !p.denies
			if !u.polar || denied == u.denied {
				return true
			}
		}
	}
	return len(u.words) > 0 && !slices.ContainsFunc(u.words, func(w unit) bool { return !t.meets(w, exactly) })
}

func done(w string) bool { return strings.HasSuffix(strings.ToLower(w), "ed") }

// equals compares values: an amount with its currency by both, a bare number
// with any number or amount of that size, an identifier by its letters.
func (w word) equals(o word) bool {
	switch {
	case w.money != nil && o.money != nil:
		return w.money.GetMinor() == o.money.GetMinor() && w.money.GetCurrency() == o.money.GetCurrency()
	case w.money != nil:
		return false
	case w.value != "":
		return w.value == o.value
	}
	return strings.EqualFold(w.raw, o.raw)
}
