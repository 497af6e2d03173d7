package masking

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Classes of characters outside ASCII in a view.
const (
	foreignLetter = 0x80
	foreignOther  = 0x81
)

// view is a text as the rules see it: one byte for each character that shows.
// Letters are in lower case, digits, spaces and dashes of every script are
// ASCII, currency signs are '$', and what nobody sees is left out.
type view struct {
	text   string
	b      []byte
	at     []int // where each character starts in text
	digits int
}

// span is a part of a view that a placeholder replaces.
type span struct {
	i, j int
	by   string
}

func look(text string) view {
	v := view{text: text, b: make([]byte, 0, len(text)), at: make([]int, 0, len(text))}
	for i, r := range text {
		c := class(r)
		if c == 0 {
			continue
		}
		if digit(c) {
			v.digits++
		}
		v.b = append(v.b, c)
		v.at = append(v.at, i)
	}
	return v
}

// class gives the byte that stands for r in a view, 0 if r does not show.
func class(r rune) byte {
	if r >= 0xff01 && r <= 0xff5e { // full width
		r -= 0xff01 - '!'
	}
	switch {
	case r >= 'A' && r <= 'Z':
		return byte(r) | 0x20
	case r < utf8.RuneSelf:
		if r == '\t' {
			return ' '
		}
		return byte(r)
	case invisible(r):
		return 0
	case unicode.Is(unicode.Nd, r):
		return '0' + value(r)
	case unicode.IsLetter(r), unicode.IsMark(r):
		return foreignLetter
	case r == '\u2028', r == '\u2029':
		return '\n'
	case unicode.IsSpace(r), r == utf8.RuneError:
		return ' '
	case unicode.Is(unicode.Pd, r), r == '\u2212':
		return '-'
	case unicode.Is(unicode.Sc, r):
		return '$'
	}
	return foreignOther
}

// invisible reports what does not part the digits around it: format characters
// and fillers, and marks drawn over what is before them.
func invisible(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0':
		return true
	}
	return r >= 0x80 && unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me)
}

// value is that of a digit of category Nd, whose ranges are runs of ten.
func value(r rune) byte {
	for _, t := range unicode.Nd.R16 {
		if r <= rune(t.Hi) {
			return byte((r - rune(t.Lo)) % 10)
		}
	}
	for _, t := range unicode.Nd.R32 {
		if r <= rune(t.Hi) {
			return byte((r - rune(t.Lo)) % 10)
		}
	}
	return 0
}

// replace gives the text with spans, in order and apart, replaced.
func (v *view) replace(spans []span) string {
	var b strings.Builder
	b.Grow(len(v.text) + 8)
	from := 0
	for _, s := range spans {
		b.WriteString(v.text[from:v.at[s.i]])
		b.WriteString(s.by)
		last := v.at[s.j-1]
		_, size := utf8.DecodeRuneInString(v.text[last:])
		from = last + size
	}
	b.WriteString(v.text[from:])
	return b.String()
}

// byteAt is 0 outside the view.
func (v *view) byteAt(i int) byte {
	if i < 0 || i >= len(v.b) {
		return 0
	}
	return v.b[i]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c == foreignLetter }

func alnum(c byte) bool { return digit(c) || letter(c) }
