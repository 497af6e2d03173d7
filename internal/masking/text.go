package masking

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/amends-dev/amends/internal/prose"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// What stands in the place of a masked number.
const (
	card    = "[card]"
	account = "[account]"
	branch  = "[bank]"
	cvv     = "[cvv]"
	code    = "[code]"
)

var tags = [...]string{card, account, branch, cvv, code}

// Text masks s and says what it found: invisible characters, control
// characters and markup as prose sees them in s, and whether it masked.
func Text(s string) (masked string, flags []amendsv1.TextFlag) {
	hidden := prose.Read(s).Hidden
	out, control := clean(s)
	before := out
	if v := look(out); v.digits > 0 {
		// Numbers with a checksum go first, so that one of many groups is one
		// token to the words around it, now and when it is masked again.
		if found := v.numbers(); len(found) > 0 {
			out = v.replace(found)
			v = look(out)
		}
		if found := v.beside(); len(found) > 0 {
			out = v.replace(found)
		}
	}
	for _, f := range [...]struct {
		on   bool
		flag amendsv1.TextFlag
	}{
		{hidden.Invisible || hidden.Ambiguous, amendsv1.TextFlag_TEXT_FLAG_BIDI_OR_INVISIBLE},
		{hidden.Control || control, amendsv1.TextFlag_TEXT_FLAG_CONTROL_CHARACTERS},
		{hidden.Markup, amendsv1.TextFlag_TEXT_FLAG_MARKUP},
		{out != before, amendsv1.TextFlag_TEXT_FLAG_MASKED},
	} {
		if f.on {
			flags = append(flags, f.flag)
		}
	}
	return out, flags
}

// clean drops control characters and repairs the encoding. Carriage returns
// become line ends; only one that does not belong to a line end is reported.
func clean(s string) (out string, control bool) {
	if !dirty(s) {
		return s, false
	}
	var b strings.Builder
	b.Grow(len(s))
	var last rune // what was written last
	dropped := false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '\r':
			if strings.HasPrefix(s[i:], "\n") {
				continue
			}
			control = true
			r = '\n'
		case unicode.IsControl(r) && r != '\n' && r != '\t':
			control, dropped = true, true
			continue
		}
		if dropped && wordy(last) && wordy(r) {
			b.WriteByte(' ')
		}
		dropped = false
		b.WriteRune(r) // RuneError for what is invalid
		last = r
	}
	return b.String(), control
}

func dirty(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return true
		}
	}
	return false
}

func wordy(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || invisible(r)
}
