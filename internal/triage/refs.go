package triage

import (
	"slices"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/prose"
)

// How many digits a number needs and may have to be taken for an order.
const (
	minDigits     = 3
	maxBareDigits = 10
)

// refs gives the orders the text names: those called so, else the numbers
// that may be one.
func (w *words) refs() (refs []string, explicit, more bool) {
	refs, more = w.explicit()
	if len(refs) > 0 {
		return refs, true, more
	}
	var out []string
	for i := range w.Tokens {
		if w.bare(i) {
			out, more = collect(out, w.Tokens[i], more)
		}
	}
	return out, false, more
}

func collect(refs []string, t prose.Token, more bool) ([]string, bool) {
	switch {
	case slices.Contains(refs, t.Raw) || ident.Token(t.Raw) != nil:
		return refs, more
	case len(refs) == MaxRefs:
		return refs, true
	}
	return append(refs, t.Raw), more
}

func (w *words) explicit() (refs []string, more bool) {
	for i := range w.Tokens {
		t := w.Tokens[i]
		switch {
		case w.orderWord(i):
			j := w.reference(i + 1)
			if j < 0 {
				continue
			}
			refs, more = collect(refs, w.Tokens[j], more)
			for t.Low == "orders" { // orders 8472 and 9001
				for j++; w.oneOf(j, "and", "&", ",", "or", "#"); j++ {
				}
				if !w.referable(j) {
					break
				}
				refs, more = collect(refs, w.Tokens[j], more)
			}
		case t.Low == "#" && w.referable(i+1) && w.Tokens[i+1].Start == t.End,
			t.Kind == prose.Ident && len(t.Low) > 3 && t.Low[:3] == "ord" && t.Digits >= minDigits && !w.glued(i):
			j := i
			if t.Low == "#" {
				j = i + 1
			}
			refs, more = collect(refs, w.Tokens[j], more)
		}
	}
	return refs, more
}

// reference gives the token behind "order", "order no.", "order number is", or
// -1.
func (w *words) reference(i int) int {
	for range 4 {
		if w.referable(i) {
			return i
		}
		if !w.oneOf(i, "no", "number", "num", "nr", "id", "is", "was", "ref", "reference", "#", ":", "(", "my", "of", "mine", "the", "numero", "número", "numéro", "núm", "n", "nº", "º", "nummer", "mit", "der", "de") {
			return -1
		}
		i++
	}
	return -1
}

// referable reports that token i can be an order id: a whole number or an
// identifier with digits enough, and no amount.
func (w *words) referable(i int) bool {
	if i < 0 || i >= len(w.Tokens) {
		return false
	}
	t := w.Tokens[i]
	return (t.Plain() || t.Kind == prose.Ident) && t.Digits >= minDigits && !w.counted(i) && !w.glued(i)
}

// glued reports that token i is stuck to another one with digits, and so may be
// a part of something longer: 0,0ORD900.
func (w *words) glued(i int) bool {
	t := w.Tokens[i]
	return i > 0 && w.Tokens[i-1].End == t.Start && w.Tokens[i-1].Digits > 0 ||
		i+1 < len(w.Tokens) && w.Tokens[i+1].Start == t.End && w.Tokens[i+1].Digits > 0
}

// bare reports that token i is a number that may be an order: no amount, no
// count, no year, no price.
func (w *words) bare(i int) bool {
	t := w.Tokens[i]
	if !t.Plain() || t.Digits < minDigits || t.Digits > maxBareDigits || w.counted(i) || w.glued(i) {
		return false
	}
	switch w.low(i - 1) {
	case "at", "x":
		return false
	case "since", "in", "from", "of", "year", "until", "till", "jan", "january", "feb", "february", "mar", "march", "apr", "april", "may",
		"jun", "june", "jul", "july", "aug", "august", "sep", "september", "oct", "october", "nov", "november", "dec", "december":
		return t.Digits != 4 || t.Raw < "1990" || t.Raw > "2099"
	}
	return true
}

// counted reports a unit behind the number.
func (w *words) counted(i int) bool {
	return w.oneOf(i+1, "x", "%", "days", "day", "hours", "hrs", "minutes", "weeks", "months", "years", "items", "pieces", "pcs", "each", "am", "pm", "times", "only", "lakh", "lakhs")
}
