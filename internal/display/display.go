package display

import (
	"strconv"
	"strings"
	"unicode"
)

// Text keeps line ends and tabs of s.
func Text(s string) string { return escape(s, true) }

// Line shows s on one line.
func Line(s string) string { return escape(s, false) }

func escape(s string, lines bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hidden(r, lines) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s { // bytes that are no UTF-8 come as U+FFFD
		if !hidden(r, lines) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// hidden reports control and format characters (among them all bidirectional
// and zero-width ones), separators other than the plain space, and what
// Unicode does not assign.
func hidden(r rune, lines bool) bool {
	if lines && (r == '\n' || r == '\t') {
		return false
	}
	return r == unicode.ReplacementChar || !unicode.IsPrint(r)
}
