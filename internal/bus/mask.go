package bus

import (
	"strings"
	"unicode"
)

const (
	// maxMasked is the longest error text a dead letter keeps, in characters.
	maxMasked = 512
	// maskFrom is the shortest run of digits that is masked: cards, accounts
	// and phone numbers have more, order numbers fewer.
	maskFrom = 9
	masked   = "[masked]"
	// maxReason is the longest reason code that is kept.
	maxReason = 64
)

// Mask makes an error text safe to keep: runs of nine or more digits, single
// separators within them included, are replaced, and the text is bounded.
func Mask(s string) string {
	in := []rune(strings.ToValidUTF8(s, "?"))
	var out []rune
	for i := 0; i < len(in); {
		end, digits := digitRun(in[i:])
		switch {
		case digits >= maskFrom:
			out = append(out, []rune(masked)...)
		case digits == 0:
			end = 1
			fallthrough
		default:
			out = append(out, in[i:i+end]...)
		}
		i += end
	}
	return string(out[:min(len(out), maxMasked)])
}

// reasonCode makes a handler's reason fit for labels and dead letters.
func reasonCode(s string) string {
	r := []rune(Mask(s))
	return string(r[:min(len(r), maxReason)])
}

// digitRun measures the digits at the start of s, ending with the last digit.
func digitRun(s []rune) (end, digits int) {
	gap := 0
	for i, r := range s {
		switch {
		case unicode.IsDigit(r):
			end, gap = i+1, 0
			digits++
		case digits > 0 && gap == 0 && isSeparator(r):
			gap++
		default:
			return end, digits
		}
	}
	return end, digits
}

func isSeparator(r rune) bool {
	return r == '-' || r == '.' || r == '/' || r == '_' || unicode.IsSpace(r)
}
