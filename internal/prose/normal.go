package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hidden says what the text holds besides what a reader sees.
type Hidden struct {
	// Invisible: bidirectional controls, zero-width characters, or words that
	// mix look-alike scripts.
	Invisible bool
	// Control: control characters other than tab and line ends.
	Control bool
	// Markup: tags or links.
	Markup bool
	// Ambiguous: a number may read differently to a person.
	Ambiguous bool
}

// maxTag bounds how far a tag may reach; a longer one is text.
const maxTag = 1024

// normalise gives the plain form of s. ASCII stays as it is, except that
// apostrophes inside words go and tags and links become space.
func normalise(s string) (string, Hidden) {
	var h Hidden
	if plain(s) {
		return s, h
	}
	s = strings.TrimPrefix(s, "\ufeff") // a byte order mark hides nothing
	for range maxPasses {
		out := pass(s, &h)
		if out == s || settled(out) {
			return out, h
		}
		s = out // what was dropped may have hidden a tag or a link
	}
	return s, h
}

// maxPasses bounds how often a text is looked through. Two uncover what was
// hidden; more are only for tags whose length the second changed.
const maxPasses = 8

// settled reports that s holds neither a tag nor a link.
func settled(s string) bool {
	return strings.IndexByte(s, '<') < 0 && !strings.Contains(s, "://") && !strings.Contains(s, "](")
}

func pass(s string, h *Hidden) string {
	n := normaliser{out: make([]byte, 0, len(s)), h: h}
	for i := 0; i < len(s); {
		if skip := n.markup(s[i:]); skip > 0 {
			h.Markup = true
			n.put(' ')
			i += skip
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		n.rune(r, size)
		i += size
	}
	return string(n.out)
}

// plain reports whether s needs no work at all.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '<', c == '\'', c == '`', c == ']':
			return false
		case c == ':' && strings.HasPrefix(s[i:], "://"):
			return false
		case c == '\n':
		case c < ' ', c >= 0x7f:
			return false
		}
	}
	return true
}

type normaliser struct {
	out []byte
	h   *Hidden
	// depth of open bidirectional embeddings, overrides and isolates.
	depth int
	// What the current run of letters and digits holds so far.
	zero   rune // zero of its digits' script, 0 without digits
	latin  bool
	like   bool // Cyrillic or Greek letter
	hidden bool // a character nobody sees
}

// markup gives the length of the tag or link at the start of s.
func (n *normaliser) markup(s string) int {
	switch {
	case s[0] == '<' && len(s) > 1 && (isLetter(s[1]) || s[1] == '/' || s[1] == '!'):
		if end := strings.IndexByte(s[:min(len(s), maxTag)], '>'); end > 0 {
			return end + 1
		}
	case s[0] == 'h' || s[0] == 'H':
		if len(s) > 8 && (strings.EqualFold(s[:7], "http://") || strings.EqualFold(s[:8], "https://")) {
			if end := strings.IndexAny(s, " \t\r\n)>\"'"); end > 0 {
				return end
			}
			return len(s)
		}
	case s[0] == ']' && len(s) > 1 && s[1] == '(':
		return 2
	}
	return 0
}

func (n *normaliser) rune(r rune, size int) {
	switch {
	case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
		n.depth = 0
		n.put('\n')
	case r == utf8.RuneError && size == 1, unicode.IsControl(r) && r != '\t':
		n.h.Control = true
		n.put(' ')
	case r == '\'' || r == '`' || r == '\u2019' || r == '\u2018' || r == '\u02bc' || r == '\uff07' || r == '\uff40':
		if l := len(n.out); l == 0 || !isLetter(n.out[l-1]) {
			n.put(' ')
		} // else dropped: don't reads dont
	case r < utf8.RuneSelf:
		n.ascii(byte(r))
	case bidi(r):
		n.bidi(r)
	case invisible(r):
		n.h.Invisible = true
		n.hide()
	case r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r):
		// Joiners belong to emoji and to Indic and Arabic words.
		if l := len(n.out); l > 0 && n.out[l-1] < utf8.RuneSelf && n.out[l-1] != ' ' {
			n.h.Invisible = true
			n.hide()
		}
	case unicode.Is(unicode.Nd, r):
		n.digit(byte('0'+digitValue(r)), r-digitValue(r))
	case r >= 0xff01 && r <= 0xff5e:
		n.ascii(byte(r - 0xff01 + '!'))
	default:
		n.other(r)
	}
}

func (n *normaliser) ascii(c byte) {
	switch {
	case c >= '0' && c <= '9':
		n.digit(c, '0')
	case isLetter(c):
		n.latin = true
		n.run()
		n.out = append(n.out, c)
	case c == '\t':
		n.put(' ')
	default:
		n.put(c)
	}
}

func (n *normaliser) other(r rune) {
	switch {
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
		if l := len(n.out); l > 0 && isDigit(n.out[l-1]) {
			n.h.Invisible, n.h.Ambiguous = true, true
			return
		}
	case unicode.Is(unicode.Cyrillic, r) || unicode.Is(unicode.Greek, r):
		n.like = true
		n.run()
	case unicode.IsSpace(r):
		n.put(' ')
		return
	case r >= '\u2010' && r <= '\u2015' || r == '\u2212':
		n.put('-')
		return
	case unicode.IsNumber(r): // superscripts, circled digits, fractions
		if l := len(n.out); l > 0 && isDigit(n.out[l-1]) {
			n.h.Ambiguous = true
		}
		n.put(' ')
		return
	case !unicode.IsLetter(r):
		n.end()
	}
	n.out = utf8.AppendRune(n.out, r)
}

func (n *normaliser) digit(c byte, zero rune) {
	if n.depth > 0 || n.zero != 0 && n.zero != zero {
		n.h.Ambiguous = true
	}
	n.zero = zero
	n.run()
	n.out = append(n.out, c)
}

// run judges the current run of letters and digits.
func (n *normaliser) run() {
	if n.like && n.latin {
		n.h.Invisible = true
	}
	if n.zero != 0 && (n.hidden || n.like) {
		n.h.Invisible, n.h.Ambiguous = true, true
	}
}

func (n *normaliser) hide() {
	n.hidden = true
	n.run()
}

func (n *normaliser) bidi(r rune) {
	n.h.Invisible = true
	switch r {
	case '\u202a', '\u202b', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068':
		n.depth++
	case '\u202c', '\u2069':
		n.depth = max(0, n.depth-1)
	}
	n.hide()
}

func (n *normaliser) put(c byte) {
	n.end()
	n.out = append(n.out, c)
}

func (n *normaliser) end() { n.zero, n.latin, n.like, n.hidden = 0, false, false, false }

func bidi(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\u200e' || r == '\u200f' || r == '\u061c'
}

func invisible(r rune) bool {
	switch r {
	case '\u00ad', '\u034f', '\u115f', '\u1160', '\u180e', '\u200b', '\u2060', '\u2061', '\u2062', '\u2063', '\u2064', '\u3164', '\ufeff', '\uffa0':
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}

// digitValue gives the value of a digit of category Nd. Its ranges are runs of
// ten, in order from zero.
func digitValue(r rune) rune {
	for _, t := range unicode.Nd.R16 {
		if r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r <= rune(t.Hi) {
			return (r - rune(t.Lo)) % 10
		}
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
