package triage

import (
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/prose"
)

// cue reports that token i says that something was paid more than once.
func (w *words) cue(i int) bool {
	switch {
	case w.is(i, repeat) && !strings.HasPrefix(w.low(i+1), "check"):
		return w.near(i, 8, charge|sum) || w.amountNear(i, 8) || (w.named || w.any(charge)) && !w.contacted(i)
	case w.low(i) == "x" && w.is(i-1, several) && w.priced(i+1), w.multiple(i):
		return true
	case w.manyTimes(i):
		return (w.is(i, charge) || w.near(i, 12, charge|sum)) && !w.contacted(i) || w.amountNear(i, 3)
	case w.is(i, several) && (w.ahead(i, 2, charges) >= 0 || w.low(i+1) == "of" && w.low(i+3) == "same" && w.is(i+4, charge)):
		return true
	case w.oneOf(i, "second", "2nd", "another", "same") && w.secondCharge(i):
		return true
	}
	return w.low(i) == "again" && w.behind(i, 4, charge) >= 0 && w.behind(i, 4, contact|absent|want) < 0
}

// manyTimes reports "two times", "2 x", "2000 x 3", "more than once".
func (w *words) manyTimes(i int) bool {
	switch {
	case w.is(i, times):
		return w.is(i-1, several) || w.low(i-1) == "do" && w.low(i) != "x" && w.low(i) != "times" && w.low(i) != "time" ||
			w.low(i) == "x" && w.is(i+1, several)
	case w.low(i) == "once":
		return w.low(i-1) == "than" && w.low(i-2) == "more"
	}
	return false
}

// priced reports that token i is a number as large as a price.
func (w *words) priced(i int) bool {
	return i < len(w.Tokens) && (w.Tokens[i].Kind == prose.Amount || w.Tokens[i].Kind == prose.Number && w.Tokens[i].Digits >= minDigits)
}

// multiple reports "4,000 was taken instead of 2,000": a whole multiple of what
// was owed.
func (w *words) multiple(i int) bool {
	if w.low(i) != "instead" || w.low(i+1) != "of" || !w.any(charge|fault) {
		return false
	}
	taken, owed := w.value(i, -1, 8), w.value(i+1, 1, 4)
	return owed > 0 && taken > owed && taken%owed == 0 && taken/owed <= 4
}

// value gives the nearest price within n tokens before or behind i, in minor
// units where it has a currency, in whole ones where not, or 0.
func (w *words) value(i, step, n int) int64 {
	for j := i + step; j >= 0 && j < len(w.Tokens) && n > 0 && w.Tokens[j].Kind != prose.Break; j, n = j+step, n-1 {
		t := w.Tokens[j]
		if t.Money != nil {
			return t.Money.GetMinor()
		}
		if w.priced(j) {
			if v, err := strconv.ParseInt(strings.ReplaceAll(t.Raw, ",", ""), 10, 64); err == nil {
				return v
			}
		}
	}
	return 0
}

// secondCharge reports "second payment", "another charge for the same", "same
// amount again".
func (w *words) secondCharge(i int) bool {
	switch w.low(i) {
	case "same":
		j := w.ahead(i, 2, charge|sum)
		return j >= 0 && (w.oneOf(j+1, "again", "repeatedly") || w.is(j+1, repeat))
	case "another":
		j := w.ahead(i, 2, charge)
		return j >= 0 && w.oneOf(j+3, "same") && w.low(j+1) == "for"
	}
	return w.ahead(i, 1, charge) >= 0 && !w.is(i-1, absent) || w.low(i+1) == "time" && w.behind(i, 6, charge) >= 0
}

// contacted reports that the words before i are about reaching us, not money.
func (w *words) contacted(i int) bool {
	j := w.behind(i, 6, contact)
	return j >= 0 && w.behind(i, i-j, charge) < 0
}

// status reports a question about a refund that the text takes to exist.
func (w *words) status() bool {
	for i := range w.Tokens {
		if !w.is(i, refund) && !w.moneyBack(i) {
			if w.is(i, sum) && w.is(i-1, mine) && w.behind(i, 3, query) >= 0 {
				return true // where is my money
			}
			continue
		}
		q := w.behind(i, 8, query)
		switch {
		case q >= 0 && w.behind(i, i-q-1, want) < 0 && !w.oneOf(q+1, "i"),
			q >= 0 && w.oneOf(q+1, "will", "can", "do", "should", "would"):
			return true
		case w.ahead(i, 5, query) >= 0 && w.low(i) != "reverse":
			return true
		case w.howLong(i), w.tooLong(i), w.asksWhetherDone(i):
			return true
		case w.late(i):
			return true
		case w.ahead(i, 8, absent) >= 0 && w.ahead(w.ahead(i, 8, absent), 4, arrive) >= 0:
			return true
		case w.ahead(i, 6, waiting) >= 0, w.is(i-1, waiting):
			return true
		case w.is(i-1, mine) && w.behind(i-1, 1, absent) >= 0 && w.ahead(i, 4, arrive) >= 0, w.is(w.ahead(i, 2, absent), absent) && w.oneOf(i+1, "is", "not", "isnt"):
			return true
		case w.requestedBefore(i) && w.missing():
			return true
		case w.is(i, refund) && w.is(w.behind(i, 4, said), said) && w.low(i) != "refund":
			return true
		}
	}
	return false
}

// late reports "have not received my refund", "still waiting for the money".
func (w *words) late(i int) bool {
	a := w.behind(i, 6, arrive)
	if a >= 0 && w.behind(a, 3, absent) >= 0 && w.behind(i, i-a-1, want) < 0 && w.gap(a, i) {
		return true
	}
	s := w.behind(i, 6, waiting)
	return s >= 0 && w.behind(i, i-s-1, want) < 0
}

// requestedBefore reports "requested a refund", "they have sent a refund".
func (w *words) requestedBefore(i int) bool {
	for j := i - 1; j >= i-5 && j >= 0 && w.Tokens[j].Kind != prose.Break; j-- {
		if w.oneOf(j, "requested", "sent", "submitted", "expecting", "promised") {
			return true
		}
	}
	return false
}

// missing reports that something did not arrive.
func (w *words) missing() bool {
	for i := range w.Tokens {
		if w.is(i, absent) && w.ahead(i, 4, arrive) >= 0 {
			return true
		}
	}
	return false
}

// gap reports that nothing but small words stand between a and i.
func (w *words) gap(a, i int) bool {
	for j := a + 1; j < i; j++ {
		if w.low(j) == "," || w.is(j, thing|broken) {
			return false
		}
	}
	return true
}

// howLong reports "how long" in the sentence of token i.
func (w *words) howLong(i int) bool {
	for j := i - 1; j > 0 && w.Tokens[j].Kind != prose.Break; j-- {
		if w.low(j) == "long" && w.oneOf(j-1, "how", "so") {
			return true
		}
	}
	return false
}

// tooLong reports "my refund is taking so long".
func (w *words) tooLong(i int) bool {
	for j := i + 1; j < len(w.Tokens) && j <= i+8 && w.Tokens[j].Kind != prose.Break; j++ {
		if w.low(j) == "long" && w.oneOf(j-1, "so", "too", "this", "that") {
			return true
		}
	}
	return false
}

// asksWhetherDone reports a sentence that begins as a question whether a refund
// was made: "has the refund been processed", "did you refund it".
func (w *words) asksWhetherDone(i int) bool {
	first := i
	for first > 0 && w.Tokens[first-1].Kind != prose.Break {
		first--
	}
	switch {
	case w.oneOf(first, "has", "have", "was", "is", "were"):
		return first < i && (w.ahead(i, 8, done|arrive) >= 0 || w.low(i) == "refunded") && w.behind(i, i-first, want) < 0
	case w.low(first) == "did":
		return w.low(first+1) == "you" && w.low(first+2) == "refund" || w.oneOf(first+1, "my", "the") && w.ahead(i, 4, arrive|done) >= 0
	}
	return false
}

// moneyBack reports that token i is the back of "give it back".
func (w *words) moneyBack(i int) bool {
	return w.oneOf(i, "back", "wapas", "वापस") && w.behind(i, 5, give|sum) >= 0
}

// waits reports that the writer is waiting for something.
func (w *words) waits() bool {
	for i := range w.Tokens {
		if w.oneOf(i, "waiting", "waited", "awaiting") || w.moneyBack(i) && w.Tokens[max(i-1, 0)].Digits > 0 ||
			w.is(i, absent) && w.is(i+1, arrive) && w.oneOf(i, "nahi", "nahin", "नहीं") {
			return true
		}
	}
	return false
}

// claimsRefund reports that by the text a refund was made or promised.
func (w *words) claimsRefund() bool {
	for i := range w.Tokens {
		switch {
		case w.moneyBack(i):
			if w.Tokens[max(i-1, 0)].Digits > 0 && w.behind(i, 5, give) >= 0 && w.behind(i, 6, want) < 0 && !w.want(i, 6) {
				return true // gave me 500 back
			}
		case !w.is(i, refund) || w.negated(i):
		case w.behind(i, 2, mine) >= 0 && w.behind(i, 5, want) < 0:
			return true
		case w.behind(i, 5, said) >= 0, w.ahead(i, 3, said) >= 0:
			return true
		case w.low(i) == "refunded" && w.behind(i, 2, be|done) >= 0 && w.behind(i, 5, want) < 0:
			return true
		case w.ahead(i, 4, done) >= 0 && w.ahead(i, 4, be) >= 0 && w.ahead(i, 4, absent) < 0:
			return true
		}
	}
	return false
}

func (w *words) want(i, n int) bool {
	for j := i - 1; j >= i-n && j >= 0 && w.Tokens[j].Kind != prose.Break; j-- {
		if w.oneOf(j, "want", "give", "take", "need") {
			return true
		}
	}
	return false
}

// wantsMoney reports a want for money back, whatever for.
func (w *words) wantsMoney() bool {
	for i := range w.Tokens {
		switch {
		case w.is(i, refund), w.moneyBack(i):
			return true
		case w.is(i, give) && w.ahead(i, 3, sum) >= 0 && w.ahead(i, 3, mine) >= 0:
			return true
		case w.is(i, fault) && (w.near(i, 4, charge|sum) || w.oneOf(i, "fee", "fees", "overcharged")):
			return true
		}
	}
	return false
}

// instructs reports text that reads like an instruction to the desk.
func (w *words) instructs() bool {
	for i := range w.Tokens {
		switch w.low(i) {
		case "system":
			if w.oneOf(i+1, "note", "prompt", "message", "instruction", "instructions", "override") {
				return true
			}
		case "ignore", "disregard", "override", "bypass", "skip":
			for j := i + 1; j <= i+4; j++ {
				if w.oneOf(j, "previous", "prior", "above", "instructions", "instruction", "rules", "policy", "policies", "verifier", "verification", "approval", "approvals", "checks", "check") {
					return true
				}
			}
		case "mark", "set":
			if w.oneOf(i+1, "approval", "approved", "as", "case", "state") && (w.oneOf(i+1, "approval", "approved") || w.oneOf(i+2, "approved", "granted", "verified", "refunded")) {
				return true
			}
		case "you":
			if w.low(i+1) == "are" && w.oneOf(i+2, "now", "an", "a") && w.oneOf(i+3, "ai", "assistant", "admin", "in", "the") {
				return true
			}
		case "assistant", "developer", "jailbreak":
			if w.oneOf(i+1, ":", "mode") || w.low(i) == "jailbreak" {
				return true
			}
		case "call_id", "tool_result", "tool_call", "function_call":
			return true
		case "#":
			if w.low(i+1) == "#" && w.low(i+2) == "#" {
				return true
			}
		}
	}
	return false
}
