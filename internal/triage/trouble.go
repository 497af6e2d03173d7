package triage

import "github.com/amends-dev/amends/internal/prose"

// fraud reports that somebody else used the customer's account or card.
func (w *words) fraud() bool {
	for i := range w.Tokens {
		switch {
		case w.is(i, fraud):
			return true
		case w.is(i, stolen) && w.near(i, 4, card):
			return true
		case w.low(i) == "who" && w.is(i+1, charge|use), w.low(i) == "who" && w.is(i+1, be) && w.is(i+2, charge|use):
			return true
		case w.oneOf(i, "someone", "somebody") && (w.ahead(i, 3, use) >= 0 || w.oneOf(i+1, "else", "has", "besides") || w.low(i-1) == "by" && w.low(i+1) == "else"):
			if w.near(i, 6, card|charge|use) {
				return true
			}
		case w.low(i) == "without" && w.is(i+1, mine) && w.oneOf(i+2, "consent", "permission", "knowledge", "authorisation", "authorization", "approval"):
			return true
		}
	}
	return false
}

// unrecognised reports a charge the customer does not know.
func (w *words) unrecognised() bool {
	if !w.any(charge|sum|card) && !w.named {
		return false
	}
	for i := range w.Tokens {
		switch {
		case w.is(i, unknown) && w.near(i, 4, charge|sum):
			return true
		case w.is(i, absent) && w.ahead(i, 3, know) >= 0:
			return true
		case w.is(i, absent) && w.is(i+1, acted) && !w.is(i-1, be) && !w.oneOf(i-1, "refund", "do", "please") && !w.oneOf(i+2, "it"):
			if w.oneOf(i, "never", "didnt", "not", "havent") && (w.low(i) != "not" || w.oneOf(i-1, "did", "have", "i")) && w.behind(i, 3, refund) < 0 {
				return true
			}
		case w.is(i, absent) && w.oneOf(i+1, "think", "believe") && w.ahead(i+1, 2, acted) >= 0:
			return true
		case w.is(i, absent) && (w.oneOf(i+1, "mine", "me", "ours") || w.oneOf(i+2, "mine") || w.low(i+1) == "from" && w.low(i+2) == "me"):
			return true
		case w.is(i, absent) && w.oneOf(i+1, "know", "sure") && w.oneOf(i+2, "what", "where", "who", "about"):
			return true
		}
	}
	return false
}

// cancels reports that something is to be cancelled.
func (w *words) cancels() bool {
	for i := range w.Tokens {
		if w.is(i, cancel) && !w.oneOf(i, "stop", "withdraw") && !w.negated(i) {
			return true
		}
	}
	return false
}

// withdraws reports that the text takes back what was asked of the desk. It
// has to be said of the request: cancelling an order, or one of two charges,
// is something else. Declining a refund takes it back, unless the text asks for
// something in the same breath, or declines it for now only.
func (w *words) withdraws() (back, declines bool) {
	plain := w.takesBack()
	declines = !plain && w.declines()
	return plain || declines && !w.asks() && !w.forNow(), declines
}

func (w *words) declines() bool {
	for i := range w.Tokens {
		if w.is(i, absent) && w.declinesRefund(i) {
			return true
		}
	}
	return w.refuses()
}

// asks reports a question: I only want to know whether, was it charged twice?
func (w *words) asks() bool {
	for i := range w.Tokens {
		switch {
		case w.oneOf(i, "whether"):
			return true
		case w.oneOf(i, "know", "tell", "see", "check", "checking", "find", "confirm", "explain", "wonder", "wondering", "curious", "asking", "understand", "clarify", "question") &&
			!w.negated(i) && w.asksAhead(i):
			return true
		case (i == 0 || w.Tokens[i-1].Kind == prose.Break) && w.oneOf(i, "why", "what", "how", "when", "where", "was", "were", "is", "are", "did", "has", "have") && w.questionMark(i) &&
			(w.ahead(i, 10, charge|sum|refund) >= 0 || w.named && w.ahead(i, 3, thing) >= 0):
			return true
		}
	}
	return false
}

func (w *words) asksAhead(i int) bool {
	for j := i + 1; j <= i+4 && j < len(w.Tokens) && w.Tokens[j].Kind != prose.Break; j++ {
		if w.oneOf(j, "if", "why", "what", "how", "when", "where", "which", "who", "was", "were", "did", "status") {
			return true
		}
	}
	return false
}

// questionMark reports that the sentence of token i ends with one.
func (w *words) questionMark(i int) bool {
	for ; i < len(w.Tokens); i++ {
		if w.Tokens[i].Kind == prose.Break {
			return w.Tokens[i].Raw == "?"
		}
	}
	return false
}

// forNow reports a refund that is declined for the moment.
func (w *words) forNow() bool {
	for i := range w.Tokens {
		if !w.is(i, absent) || !w.declinesRefund(i) {
			continue
		}
		for j := i + 1; j < len(w.Tokens) && w.Tokens[j].Kind != prose.Break; j++ {
			if w.oneOf(j, "yet", "moment", "meantime", "meanwhile", "today", "tonight", "immediately") || w.low(j) == "for" && w.low(j+1) == "now" || w.low(j) == "right" && w.low(j+1) == "now" ||
				w.oneOf(j, "until", "till", "before", "unless") {
				return true
			}
		}
	}
	return false
}

// takesBack reports a plain take-back.
func (w *words) takesBack() bool {
	for i := range w.Tokens {
		switch {
		case w.is(i, cancel):
			if w.cancelsRequest(i) {
				return true
			}
		case w.low(i) == "leave" && w.oneOf(i+1, "it", "this", "that") && !w.negated(i):
			if !w.oneOf(i+2, "to", "with", "at", "in", "on", "like", "as", "outside", "there", "by", "up") {
				return true
			}
		case w.low(i) == "nevermind", w.low(i) == "never" && w.low(i+1) == "mind":
			return true
		case w.oneOf(i, "forget", "drop", "scrap") && (w.oneOf(i+1, "it", "this", "that") || w.low(i+1) == "about" && w.oneOf(i+2, "it", "this", "that") ||
			w.ahead(i, 2, request) >= 0) && !w.negated(i):
			return true
		case w.low(i) == "ignore" && w.ignoresRequest(i) && !w.negated(i):
			return true
		case w.low(i) == "false" && w.low(i+1) == "alarm":
			return true
		}
	}
	return false
}

// cancelsRequest reports a cancel whose object is the request itself, or
// nothing at all in a text that speaks of nothing else.
func (w *words) cancelsRequest(i int) bool {
	if w.negated(i) || w.oneOf(i, "cancelled", "canceled", "cancellation", "undo") {
		return false
	}
	for j := i + 1; j <= i+4; j++ {
		if w.is(j, request) {
			return true
		}
		if !w.is(j, mine) && !w.oneOf(j, "the", "this", "that", "all", "any", "a", "entire", "whole", "la", "ma", "o", "die") {
			break
		}
	}
	if w.low(i) != "cancel" || w.any(charge|thing) {
		return false
	}
	return w.oneOf(i+1, "it", "this", "that", "everything", "all", "please", "now") || w.oneOf(i+1, "", ".", "\n", "!")
}

func (w *words) ignoresRequest(i int) bool {
	for j := i + 1; j <= i+4; j++ {
		if w.is(j, request) || w.oneOf(j, "message", "email", "mail", "call", "note", "report") {
			return w.oneOf(i+1, "my", "this", "the", "that", "it") && !w.oneOf(j, "instructions")
		}
	}
	return false
}

// declinesRefund reports "do not refund anything", "no longer need it",
// "no need to refund"; i is the negation.
func (w *words) declinesRefund(i int) bool {
	if w.low(i) == "no" && w.low(i+1) == "longer" && w.oneOf(i+2, "want", "need", "require", "needed", "wanted", "required") {
		return w.ahead(i, 6, request) >= 0 || w.oneOf(i+3, "it", "this", "that", "", ".", "any")
	}
	if w.low(i) == "no" && w.low(i+1) == "need" {
		return w.ahead(i, 4, refund) >= 0 || w.oneOf(i+2, "any", "anymore", "", ".", "now")
	}
	if !w.oneOf(i, "dont", "not") || w.low(i) == "not" && !w.oneOf(i-1, "do", "please") {
		return false
	}
	from := i + 1
	switch {
	case w.oneOf(i+1, "need", "want") && w.ahead(i+1, 3, refund) >= 0:
		// I do not want a refund of both, I want one.
		if other := w.ahead(i+1, 8, want); other >= 0 && w.low(other+2) != "know" && !w.oneOf(i+5, "anymore", "any") {
			return false
		}
		from = w.ahead(i+1, 3, refund)
	case !w.oneOf(i+1, "refund", "reverse", "reimburse", "proceed"):
		return false
	}
	for j := from + 1; j <= from+4 && j < len(w.Tokens) && w.low(j) != ","; j++ {
		if w.oneOf(j, "to", "on", "onto", "by", "via", "into", "twice", "both", "only", "without") {
			return false
		}
	}
	return true
}
