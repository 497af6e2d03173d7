package triage

import "github.com/amends-dev/amends/internal/prose"

// words is a text with the classes of its words. Its rules look a few words
// around, and never across the end of a sentence.
type words struct {
	prose.Text
	class []class
	// named says that the text holds an order reference.
	named bool
}

func (w *words) is(i int, c class) bool {
	return i >= 0 && i < len(w.class) && w.class[i]&c != 0
}

func (w *words) low(i int) string {
	if i < 0 || i >= len(w.Tokens) {
		return ""
	}
	return w.Tokens[i].Low
}

func (w *words) oneOf(i int, list ...string) bool {
	s := w.low(i)
	for _, l := range list {
		if s == l {
			return true
		}
	}
	return false
}

// ahead gives the first of the next n tokens of the sentence with a class of
// c, or -1.
func (w *words) ahead(i, n int, c class) int {
	for j := i + 1; j <= i+n && j < len(w.Tokens) && w.Tokens[j].Kind != prose.Break; j++ {
		if w.class[j]&c != 0 {
			return j
		}
	}
	return -1
}

// behind gives the nearest of the n tokens before i with a class of c, or -1.
func (w *words) behind(i, n int, c class) int {
	for j := i - 1; j >= i-n && j >= 0 && w.Tokens[j].Kind != prose.Break; j-- {
		if w.class[j]&c != 0 {
			return j
		}
	}
	return -1
}

func (w *words) near(i, n int, c class) bool {
	return w.ahead(i, n, c) >= 0 || w.behind(i, n, c) >= 0
}

func (w *words) any(c class) bool {
	for _, have := range w.class {
		if have&c != 0 {
			return true
		}
	}
	return false
}

// amountNear reports an amount within n tokens of the sentence.
func (w *words) amountNear(i, n int) bool {
	for j := i; j <= i+n && j < len(w.Tokens) && (j == i || w.Tokens[j].Kind != prose.Break); j++ {
		if w.Tokens[j].Kind == prose.Amount {
			return true
		}
	}
	for j := i - 1; j >= i-n && j >= 0 && w.Tokens[j].Kind != prose.Break; j-- {
		if w.Tokens[j].Kind == prose.Amount {
			return true
		}
	}
	return false
}

// negated reports a not, never, no just before token i.
func (w *words) negated(i int) bool { return w.behind(i, 3, absent) >= 0 }
