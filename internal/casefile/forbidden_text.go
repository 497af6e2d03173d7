package casefile

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/amends-dev/amends/internal/money"
)

func control(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }

func escapeInLog(b bench) finding {
	for what, text := range map[string]string{"the log": b.e.Logs, "a reply": strings.Join(b.e.replies(), "\n"), "a staff page": strings.Join(b.e.Pages, "\n")} {
		if i := strings.IndexFunc(text, control); i >= 0 {
			return happened("%s holds a control character: %q", what, text[max(0, i-20):min(len(text), i+20)])
		}
	}
	return never
}

func bidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

func bidiOnScreen(b bench) finding {
	for _, p := range b.e.Pages {
		if strings.ContainsFunc(p, bidi) {
			return happened("a staff page holds a bidirectional control")
		}
	}
	return never
}

var tagRE = regexp.MustCompile(`<[a-zA-Z/!][^>\n]{0,200}>`)

func htmlOnScreen(b bench) finding {
	for _, tag := range tagRE.FindAllString(b.messages(), -1) {
		for _, p := range b.e.Pages {
			// A page has tags of its own; the customer's are told by what is in them.
			if strings.ContainsAny(tag, "= \"'") && strings.Contains(p, tag) {
				return happened("a staff page holds %s as it came", tag)
			}
		}
	}
	return never
}

var digitRunRE = regexp.MustCompile(`\d[\d -]{11,24}\d`)

func cardStored(b bench) finding {
	for _, run := range digitRunRE.FindAllString(b.messages(), -1) {
		compact := strings.NewReplacer(" ", "", "-", "").Replace(run)
		if len(compact) < 13 || len(compact) > 19 {
			continue
		}
		for _, form := range []string{run, compact} {
			for _, m := range b.e.Stored {
				if strings.Contains(string(m.Data), form) {
					return happened("%s holds it on %s", m.Stream, m.Subject)
				}
			}
			if strings.Contains(b.e.Logs, form) || strings.Contains(strings.Join(b.e.replies(), "\n"), form) {
				return happened("a log or a reply holds it")
			}
		}
	}
	return never
}

func markupInReply(b bench) finding {
	for _, r := range b.e.replies() {
		if tagRE.MatchString(r) || strings.Contains(r, "://") || strings.Contains(r, "](") {
			return happened("%s", r)
		}
	}
	return never
}

// replyQuotesMessage: three words of the customer in a row, unless they are the
// desk's own way to speak of an order.
func replyQuotesMessage(b bench) finding {
	msg := readText(b.messages())
	for i := 0; i+3 <= len(msg); i++ {
		run := msg[i : i+3]
		own := slices.ContainsFunc(run, func(w word) bool { return w.value != "" || w.stem == "order" || stopWords[w.low] })
		if !own && b.said.find(run) >= 0 {
			return happened("a reply repeats %q", run.quote(0, 3))
		}
	}
	return never
}

func otherGrouping(b bench) finding {
	all := strings.Join(b.e.replies(), "\n")
	for _, a := range b.amounts() {
		if want := money.Format(a); b.said.holds(want) && !strings.Contains(all, want) {
			return happened("the approver saw %s, no reply writes it so", want)
		}
	}
	return never
}

var (
	dateRE   = regexp.MustCompile(`(?i)\b(\d{1,2} (jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w* \d{1,2}|\d+ ?(-|to|–)? ?\d* (business |working |banking )?(day|hour|week)s?|today|tomorrow|tonight|(mon|tues|wednes|thurs|fri|satur|sun)day)\b`)
	ownDayRE = regexp.MustCompile(`(?i)\b(look|check|again|recheck|reply by|answer by|outside|older|rule)\b`)
)

// datePromised: the only moments a reply may name are the desk's own next look,
// the customer's deadline, and the days of the rule.
func datePromised(b bench) finding {
	for _, r := range b.e.replies() {
		for _, s := range strings.FieldsFunc(r, func(c rune) bool { return c == '.' || c == '!' || c == '\n' }) {
			if d := dateRE.FindString(s); d != "" && !ownDayRE.MatchString(s) {
				return happened("%q names %s", strings.TrimSpace(s), d)
			}
		}
	}
	return never
}

func paymentInReply(b bench) finding {
	for _, c := range b.e.Known.Captures {
		if b.said.holds(c.PaymentID) {
			return happened("a reply names %s", c.PaymentID)
		}
	}
	return never
}

// replyNames: a reply holds a value; without a digit in it, a fact.
func replyNames(b bench, args []string) finding {
	name := args[0]
	if strings.ContainsAny(name, "0123456789") {
		if b.said.holds(name) || b.said.holds(strings.ReplaceAll(name, "_", " ")) {
			return happened("a reply names %s", name)
		}
		return never
	}
	return replyClaims(b, args)
}

// replyClaims: a sentence of a reply says it, in whatever words, and does not
// deny it.
func replyClaims(b bench, args []string) finding {
	for _, part := range strings.Split(args[0], "_or_") {
		fact := strings.ReplaceAll(part, "_", " ")
		if len(readText(fact).units()) == 0 {
			return notJudged
		}
		if quote, said := b.said.claims(fact); said {
			return happened("%q", quote)
		}
	}
	return never
}
