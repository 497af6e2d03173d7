package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Kind says what a token is.
type Kind uint8

const (
	// Word is a run of letters; hyphens part words.
	Word Kind = iota + 1
	// Number is a run of digits, with grouping and decimals if it has any.
	Number
	// Ident is a run of letters, digits, "_" and "-" that holds a digit or "_".
	Ident
	// Stamp is digits joined by "/" or ":": a date or a time of day.
	Stamp
	// Amount is a Number with a currency beside it.
	Amount
	// Mark is one of # % / , ( ) : or a currency sign.
	Mark
	// Break ends a sentence or a line.
	Break
)

// Token is a piece of a Text.
type Token struct {
	Kind Kind
	// Start and End bound it in the normalised text.
	Start, End int
	// Raw is its normalised text, Low the same with ASCII in lower case.
	Raw, Low string
	// Digits counts its digits.
	Digits int
	// Money is an Amount's value; nil when the number does not parse in its
	// currency.
	Money *amendsv1.Money
}

// Plain reports whether the token is a whole number without grouping.
func (t Token) Plain() bool { return t.Kind == Number && len(t.Raw) == t.Digits }

// Text is a text taken apart.
type Text struct {
	Tokens []Token
	Hidden Hidden

	raw, low string
}

// Read takes s apart.
func Read(s string) Text {
	raw, hidden := normalise(s)
	t := Text{raw: raw, low: lower(raw), Hidden: hidden, Tokens: make([]Token, 0, len(raw)/5+4)}
	for i := 0; i < len(raw); {
		i = t.scan(i)
	}
	t.amounts()
	return t
}

// Normalised gives the text that token positions refer to.
func (t Text) Normalised() string { return t.raw }

// lower keeps every byte's position.
func lower(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			return strings.Map(func(r rune) rune {
				if r >= 'A' && r <= 'Z' {
					return r + 'a' - 'A'
				}
				return r
			}, s)
		}
	}
	return s
}

// scan reads the token at i and gives the position after it.
func (t *Text) scan(i int) int {
	c := t.raw[i]
	switch {
	case isLetter(c) || isDigit(c):
		return t.run(i)
	case c == '\n' || c == '!' || c == '?' || c == ';':
		return t.add(Break, i, i+1)
	case c == '.':
		if !t.abbreviation() && (i+1 == len(t.raw) || !isLetter(t.raw[i+1]) && !isDigit(t.raw[i+1])) {
			return t.add(Break, i, i+1)
		}
		return i + 1
	case strings.IndexByte("#%/,():$", c) >= 0:
		return t.add(Mark, i, i+1)
	case c < utf8.RuneSelf:
		return i + 1
	}
	return t.foreign(i)
}

// foreign reads a run of letters outside ASCII, or a currency sign.
func (t *Text) foreign(i int) int {
	j := i
	for j < len(t.raw) {
		r, size := utf8.DecodeRuneInString(t.raw[j:])
		switch {
		case unicode.Is(unicode.Sc, r):
			if j > i {
				return t.add(Word, i, j)
			}
			return t.add(Mark, j, j+size)
		case r == '।' || r == '。':
			if j > i {
				return t.add(Word, i, j)
			}
			return t.add(Break, j, j+size)
		case r < utf8.RuneSelf && !isLetter(byte(r)):
			if j > i {
				t.add(Word, i, j)
			}
			return j
		case r >= utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '\u200c' && r != '\u200d':
			if j > i {
				return t.add(Word, i, j)
			}
			return j + size
		}
		j += size
	}
	return t.add(Word, i, j)
}

// run reads a run of ASCII letters, digits, "_" and "-".
func (t *Text) run(i int) int {
	j, digits, letters, joints := i, 0, 0, 0
	for j < len(t.raw) {
		c := t.raw[j]
		switch {
		case isDigit(c):
			digits++
		case isLetter(c):
			letters++
		case c == '_' || c == '-':
			joints++
		default:
			goto end
		}
		j++
	}
end:
	for t.raw[j-1] == '-' || t.raw[j-1] == '_' {
		j--
		joints--
	}
	switch {
	case letters == 0 && joints == 0:
		return t.number(i, j)
	case digits == 0 && strings.IndexByte(t.raw[i:j], '_') < 0:
		if j < len(t.raw) && t.raw[j] >= utf8.RuneSelf && joints == 0 {
			return t.foreign(i) // naïve
		}
		for k := i; k < j; {
			end := k
			for end < j && t.raw[end] != '-' {
				end++
			}
			if end > k {
				t.add(Word, k, end)
			}
			k = end + 1
		}
		return j
	case joints == 0:
		if cut := t.split(i, j); cut > i {
			if isDigit(t.raw[i]) {
				t.number(i, cut)
				return t.add(Word, cut, j)
			}
			t.add(Word, i, cut)
			return t.number(cut, j)
		}
	}
	return t.add(Ident, i, j)
}

// glued are units and currency words that people write onto a number. Anything
// else stays part of it: 8472A is not 8472.
var glued = map[string]bool{
	"x": true, "rs": true, "inr": true, "usd": true, "eur": true, "gbp": true, "jpy": true, "yen": true, "rupees": true, "rupee": true,
	"st": true, "nd": true, "rd": true, "th": true, "am": true, "pm": true, "hrs": true, "hr": true, "h": true, "days": true, "day": true, "d": true,
	"k": true, "lakh": true, "lakhs": true, "crore": true, "times": true,
	"order": true,
}

// split finds where a number and a glued unit part, or 0.
func (t *Text) split(i, j int) int {
	cut := i + 1
	for cut < j && isDigit(t.raw[cut]) == isDigit(t.raw[i]) {
		cut++
	}
	for k := cut; k < j; k++ {
		if isDigit(t.raw[k]) == isDigit(t.raw[i]) {
			return 0
		}
	}
	unit := t.low[i:cut]
	if isDigit(t.raw[i]) {
		unit = t.low[cut:j]
	}
	if !glued[unit] {
		return 0
	}
	return cut
}

// number reads digits with grouping and decimals; [i, j) is its first run.
// Commas behind more digits than a group has list several numbers.
func (t *Text) number(i, j int) int {
	k := j
	for k+1 < len(t.raw) && (t.raw[k] == ',' || t.raw[k] == '.') && isDigit(t.raw[k+1]) {
		k++
		for k < len(t.raw) && isDigit(t.raw[k]) {
			k++
		}
	}
	if k == j && k+1 < len(t.raw) && (t.raw[k] == '/' || t.raw[k] == ':') && isDigit(t.raw[k+1]) {
		for k < len(t.raw) && (isDigit(t.raw[k]) || (t.raw[k] == '/' || t.raw[k] == ':') && k+1 < len(t.raw) && isDigit(t.raw[k+1])) {
			k++
		}
		return t.add(Stamp, i, k)
	}
	if k == j || t.raw[j] != ',' || j-i <= 3 || t.before(len(t.Tokens)) != "" {
		return t.add(Number, i, k)
	}
	for s := i; s < k; {
		end := s
		for end < k && t.raw[end] != ',' {
			end++
		}
		t.add(Number, s, end)
		s = end + 1
	}
	return k
}

var abbreviations = map[string]bool{"no": true, "rs": true, "nr": true, "num": true, "mr": true, "ms": true, "approx": true, "ref": true}

// abbreviation reports whether the last token is one, written onto a dot.
func (t *Text) abbreviation() bool {
	n := len(t.Tokens)
	return n > 0 && t.Tokens[n-1].Kind == Word && abbreviations[t.Tokens[n-1].Low]
}

func (t *Text) add(k Kind, i, j int) int {
	if n := len(t.Tokens); k == Break && n > 0 && t.Tokens[n-1].Kind == Break {
		return j
	}
	tok := Token{Kind: k, Start: i, End: j, Raw: t.raw[i:j], Low: t.low[i:j]}
	if k == Number || k == Ident || k == Stamp {
		for _, c := range []byte(tok.Raw) {
			if isDigit(c) {
				tok.Digits++
			}
		}
	}
	t.Tokens = append(t.Tokens, tok)
	return j
}
