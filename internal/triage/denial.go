package triage

import "github.com/amends-dev/amends/internal/prose"

// maxReach is how many tokens a denial may stand before what it denies.
const maxReach = 24

// duplicate reports whether the text says that something was paid more than
// once, and whether it says that it was not. It may say both.
func (w *words) duplicate() (said, denied bool) {
	for i := range w.Tokens {
		switch c := w.cue(i); {
		case !c && !w.is(i, repeat):
		case w.denies(i):
			denied = denied || c || !w.contacted(i)
		default:
			said = said || c
		}
	}
	return said, denied || w.retracts()
}

// denies reports that the sentence of the cue at i says that it is not so. Two
// denials are none.
func (w *words) denies(i int) bool {
	if w.deniedBehind(i) || w.deniedWithin(i) || w.answeredNo(i) {
		return true
	}
	denied, aside := false, false
	for j := i - 1; j >= i-maxReach && j >= 0; j-- {
		switch {
		case w.Tokens[j].Kind == prose.Break, w.oneOf(j, clauses...):
			return denied
		case w.low(j) == ",":
			// was not, as far as I can see, charged twice
			if !aside && w.asideFrom(j) < 0 {
				return denied
			}
			aside = !aside
		case w.oneOf(j, complaints...):
			return denied
		case w.denial(j):
			if w.complains(j) {
				return denied
			}
			denied = !denied
		}
	}
	return denied
}

// clauses begin another statement: a denial before them is not of what follows.
var clauses = []string{
	"but", "because", "and", "so", "although", "though", "since", "why", "how", "what", "which", "where", "when", "until", "till", "while",
	"if", "whether", "instead", "rather", "(", ":", "still", "please", "pls",
}

// complaints are what a denial before them is of, instead of the charge: not
// happy, not expected to, no refund.
var complaints = []string{
	"understand", "understood", "happy", "pleased", "impressed", "ok", "okay", "fair", "acceptable", "accept", "right", "normal", "want", "wanted", "like",
	"expect", "expected", "expecting", "should", "shouldnt", "supposed", "meant", "agree", "agreed", "authorise", "authorize", "authorised", "authorized", "only", "just", "merely",
	"notice", "noticed", "realise", "realize", "realised", "realized", "idea", "clue", "reason", "reasons", "excuse", "explain", "explained", "explanation", "need", "going", "let", "allow", "allowed",
	"ordered", "buy", "bought", "purchased", "place", "placed", "click", "clicked", "press", "pressed", "approve", "approved", "ensure", "sure", "hope", "wish",
	"refund", "refunded", "refunds", "reversed", "reversal", "reimbursed", "received", "receive", "arrived", "fix", "fixed", "resolve", "resolved", "solve", "solved", "corrected", "answered", "happen", "happens",
}

// asideFrom gives the denial that a comma at j may belong to, "was not, …,", or
// -1.
func (w *words) asideFrom(j int) int {
	for k := j - 1; k >= j-10 && k >= 0 && w.Tokens[k].Kind != prose.Break; k-- {
		if w.low(k) == "," {
			j = k
			break
		}
	}
	if w.denial(j-1) && (w.is(j-2, be) || w.is(j-1, be)) {
		return j - 1
	}
	return -1
}

// denial reports a word that denies what follows it.
func (w *words) denial(j int) bool {
	switch {
	case w.low(j) == "no":
		// No, I was; order no. 8472
		return !w.oneOf(j+1, "i", "it", "you", "we", "they", "my", "the", "this", "that", "#", ",", ":", "is") && !w.oneOf(j-1, "order", "ref", "reference", "invoice") && (j+1 >= len(w.Tokens) || w.Tokens[j+1].Digits == 0)
	case w.oneOf(j, "none", "unable", "have"):
		return false
	}
	return w.is(j, absent) || w.oneOf(j, "werent", "wouldnt", "neither", "nor", "nobody", "nothing", "doubt", "doubtful", "deny", "false")
}

// complains reports a denial that asks for something or is astonished: do not
// charge me twice, cannot believe it, not only twice.
func (w *words) complains(j int) bool {
	switch {
	case w.oneOf(j, "cant", "cannot", "couldnt") && !w.oneOf(j+1, "see", "find", "spot", "be", "have", "confirm"):
		return true
	case w.oneOf(j, "wont", "wouldnt"), w.low(j) == "not" && w.oneOf(j-1, "will", "would", "to", "should", "must"):
		return true
	case w.low(j) == "have", w.low(j+1) == "again", w.low(j) == "never" && w.oneOf(j+1, "mind"):
		return true
	case w.oneOf(j+1, "charge", "bill", "debit", "deduct", "take", "double", "duplicate"):
		return w.low(j) == "dont" || w.low(j) == "not" && w.oneOf(j-1, "do", "please", "must") || w.low(j) == "never" && w.low(j+1) != "double" && w.low(j+1) != "duplicate"
	case w.is(j+1, acted) && !w.oneOf(j+1, "charge", "take", "completed", "complete", "put", "set", "request", "use"):
		return !w.oneOf(j+1, "order", "purchase") || w.Tokens[j+1].Kind == prose.Word && w.oneOf(j, "didnt", "dont") || w.low(j-1) == "did"
	}
	return false
}

// deniedBehind reports a denial behind the cue: the second payment was not
// taken, the duplicate does not exist, do baar nahi kata.
func (w *words) deniedBehind(i int) bool {
	for j := i + 1; j <= i+6 && j < len(w.Tokens) && w.Tokens[j].Kind != prose.Break && w.low(j) != "," && !w.oneOf(j, clauses...); j++ {
		if !w.is(j, absent) || w.low(j) == "no" || w.oneOf(j, complaints...) {
			continue
		}
		if w.oneOf(j+1, "happen", "happened", "exist", "exists", "occur", "occurred", "true", "there", "real") || w.oneOf(j, "nahi", "nahin", "नहीं") && w.is(j+1, charge) {
			return true
		}
		k := j + 1
		for w.oneOf(k, "been", "be", "actually", "really", "even") {
			k++
		}
		return w.is(i, repeat) && w.is(i+1, charge|sum) && w.taken(k) || !w.is(i, repeat) && w.taken(k)
	}
	return false
}

// answeredNo reports a question that the text answers itself: twice? No.
func (w *words) answeredNo(i int) bool {
	for i < len(w.Tokens) && w.Tokens[i].Kind != prose.Break {
		i++
	}
	if i >= len(w.Tokens) || w.Tokens[i].Raw != "?" || !w.oneOf(i+1, "no", "nope", "not") {
		return false
	}
	return w.oneOf(i+2, "", "\n", ".", "!", ";", ",", "all", "it", "just", "only", "really") || w.is(i+2, be)
}

func (w *words) taken(k int) bool {
	return w.oneOf(k, "taken", "charged", "captured", "debited", "deducted", "billed") && !w.oneOf(k+1, "back", "off")
}

// retracts reports that the writer finds nothing wrong any more: it was only
// once, all good now, my mistake.
func (w *words) retracts() bool {
	for i := range w.Tokens {
		switch {
		case w.low(i) == "once" && w.low(i-1) != "at" && w.low(i+1) != "i" && w.onlyOnce(i):
			return true
		case w.low(i) == "all" && w.oneOf(i+1, "good", "fine", "ok", "okay", "sorted", "resolved", "settled", "solved", "clear") && !w.oneOf(w.behind(i, 3, absent), "not", "isnt", "arent", "wasnt", "never") && w.low(i-1) != "at":
			return true
		case w.oneOf(i, "mistake", "error", "bad") && w.low(i-1) == "my" && !w.oneOf(i-2, "by", "of", "to", "through", "not", "isnt", "for", "in"):
			return true
		case w.oneOf(i, "solved", "resolved", "sorted", "fixed") && w.oneOf(i-1, "been", "is", "was", "its", "got", "now", "already", "itself") && w.behind(i, 5, absent) < 0 && w.settledBefore(i):
			return true
		}
	}
	return false
}

// settledBefore reports that what was solved is the matter: no condition, and
// no demand, stands before it.
func (w *words) settledBefore(i int) bool {
	for j := i - 1; j >= 0 && j >= i-8 && w.Tokens[j].Kind != prose.Break; j-- {
		if w.oneOf(j, "if", "until", "unless", "when", "want", "need", "please", "has", "is", "was", "have") && (w.oneOf(j, "if", "until", "unless", "when", "want", "need", "please") || j == 0 || w.Tokens[j-1].Kind == prose.Break) {
			return false
		}
	}
	return true
}

// onlyOnce reports "it was only once", "was charged just once"; what should
// have been, and what the writer did, was asked for only once and says nothing.
func (w *words) onlyOnce(i int) bool {
	only := false
	for j := i - 1; j >= 0 && j >= i-8 && w.Tokens[j].Kind != prose.Break && w.low(j) != "," && !w.oneOf(j, "but", "and", "because"); j-- {
		switch {
		case w.oneOf(j, "only", "just"):
			only = true
		case w.low(j) == "order" && w.reference(j+1) >= 0: // the order 8472 was
		case w.oneOf(j, meantOnce...):
			return false
		}
	}
	return only
}

// meantOnce are words by which once is what was meant, or what the writer did.
var meantOnce = []string{
	"should", "shouldve", "supposed", "meant", "expected", "ordered", "order", "bought", "purchased", "made", "placed", "used", "paid", "pay", "instead", "clicked", "pressed",
	"not", "wasnt", "if", "to", "agreed", "authorised", "authorized", "than", "called", "asked", "want", "wanted",
}
