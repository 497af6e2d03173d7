package casefile

import (
	"fmt"
	"slices"
	"strings"
)

// unsaid gives what of a fact a text does not say; nothing when it says all.
// orders are those "both orders" means.
func unsaid(fact string, said text, orders []string) []string {
	f := readText(fact)
	var out []string
	for _, u := range f.units() {
		if !said.meets(u, false) {
			out = append(out, describe(u))
		}
	}
	plural := slices.ContainsFunc(f, func(w word) bool { return w.low == "both" || w.low == "each" || w.low == "all" }) &&
		slices.ContainsFunc(f, func(w word) bool { return w.stem == "order" })
	for _, o := range orders {
		if plural && !said.holds(o) {
			out = append(out, fmt.Sprintf("order %s", o))
		}
	}
	return out
}

func describe(u unit) string {
	switch {
	case u.value != nil:
		return fmt.Sprintf("the value %q", u.text)
	case u.polar && u.denied:
		return fmt.Sprintf("a denial of %q", u.text)
	}
	return fmt.Sprintf("%q", u.text)
}

// holds reports that a text names an identifier or a number.
func (t text) holds(name string) bool {
	n := readText(name)
	return len(n) > 0 && t.find(n) >= 0
}

// find gives the first place at which a text has these words in a row and in
// one sentence, compared as words and values, or -1.
func (t text) find(words text) int {
	return t.findAfter(words, 0)
}

func (t text) findAfter(words text, from int) int {
	if len(words) == 0 {
		return -1
	}
next:
	for i := from; i+len(words) <= len(t); i++ {
		for j, w := range words {
			o := t[i+j]
			same := w.low == o.low || (w.value != "" || w.money != nil) && w.equals(o)
			if !same || o.sentence != t[i].sentence {
				continue next
			}
		}
		return i
	}
	return -1
}

// states reports that a text says a phrase word for word, and does not deny it
// in the same clause. It gives the sentence.
func (t text) states(words string) (quote string, said bool) {
	p := readText(words)
	denies := slices.ContainsFunc(p, func(w word) bool { return negators[w.low] })
	for i := t.find(p); i >= 0; i = t.findAfter(p, i+1) {
		if !t[i].denied || denies {
			return t.sentence(t[i].sentence), true
		}
	}
	return "", false
}

// claims reports that one sentence of a text says a whole fact, in whatever
// words. It gives the sentence.
func (t text) claims(fact string) (quote string, said bool) {
	units := readText(fact).units()
	if len(units) == 0 {
		return "", false
	}
	for _, s := range t.sentences() {
		if !slices.ContainsFunc(units, func(u unit) bool { return !s.meets(u, true) }) {
			return s.quote(0, len(s)), true
		}
	}
	return "", false
}

// implies reports that one sentence of a text says a phrase that must not be
// said, in whatever words: it affirms what the phrase affirms, and denies what
// it denies. It is stricter than claims, to be fair to the reply: only words
// that can be denied have synonyms, all others stand for themselves. It gives
// the sentence.
func (t text) implies(phrase string) (quote string, said bool) {
	units := readText(phrase).units()
	if len(units) == 0 {
		return "", false
	}
	for _, s := range t.sentences() {
		if !slices.ContainsFunc(units, func(u unit) bool { return !s.affirms(u) }) {
			return s.quote(0, len(s)), true
		}
	}
	return "", false
}

// affirms reports that a sentence says a unit with the same sign.
func (t text) affirms(u unit) bool {
	polar := slices.ContainsFunc(u.groups, func(g string) bool { return groups[g].polar })
	for i, w := range t {
		switch {
		case u.value != nil:
			if u.value.equals(w) && u.value.denied == w.denied {
				return true
			}
		case !polar:
			if len(u.words) == 0 && w.stem == u.stem && w.denied == u.denied {
				return true
			}
		default:
			if t.affirmsAt(i, u) {
				return true
			}
		}
	}
	return len(u.words) > 0 && !slices.ContainsFunc(u.words, func(w unit) bool { return !t.affirms(w) })
}

func (t text) affirmsAt(i int, u unit) bool {
	for _, p := range t.phraseAt(i) {
		if !p.polar || !slices.Contains(u.groups, p.group) || (t[i].denied && !p.denies) != u.denied {
			continue
		}
		// "Refunded" may say that a refund was made, wherever it is by now. Other
		// words, as credited, say that the money is back.
		if p.group == "refund" && done(u.text) && !done(t[i].low) && len(p.words) == 1 && (!slices.Contains(refundMade, u.stem) || !t.tellsOfRefund()) {
			continue
		}
		return true
	}
	return false
}

var refundMade = []string{stem("refunded"), stem("reimbursed"), stem("reversed")}

// tellsOfRefund reports a sentence by which a refund is under way or done, and
// did not fail.
func (t text) tellsOfRefund() bool {
	under := false
	for i, w := range t {
		for _, p := range t.phraseAt(i) {
			affirmed := !w.denied || p.denies
			switch p.group {
			case "requested", "pending", "completed", "arrived":
				under = under || affirmed
			case "fail", "cancelled", "declined":
				if affirmed {
					return false
				}
			}
		}
	}
	return under
}

func (t text) sentences() []text {
	var out []text
	for i := 0; i < len(t); {
		j := i
		for j < len(t) && t[j].sentence == t[i].sentence {
			j++
		}
		out = append(out, t[i:j])
		i = j
	}
	return out
}

func (t text) sentence(n int) string {
	for _, s := range t.sentences() {
		if s[0].sentence == n {
			return s.quote(0, len(s))
		}
	}
	return ""
}

// joined reads several texts as one, none running into the next.
func joined(texts []string) text { return readText(strings.Join(texts, "\n")) }
