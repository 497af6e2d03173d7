package masking_test

import (
	"regexp"
	"strings"
	"unicode"
)

// The oracle reads card numbers its own way, by regular expression and the
// textbook sum, from text whose digits are ASCII.

var (
	year = regexp.MustCompile(`(19|20)\d\d-\d\d?-\d\d?|\d\d?-\d\d?-(19|20)\d\d`)
	runs = regexp.MustCompile(`\d(?:[ -]{0,3}\d)*`)
)

func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r):
			return -1
		case r == '\u2013':
			return '-'
		case !unicode.IsDigit(r):
			return r
		}
		for _, zero := range []rune{'0', '\u0660', '\u0966', '\uff10', '\U0001d7ce'} {
			if r >= zero && r < zero+10 {
				return '0' + r - zero
			}
		}
		return r
	}, s)
}

// cardIn gives a run of 13 to 19 digits with a valid sum, if there is one.
func cardIn(s string) string {
	for _, run := range runs.FindAllString(s, -1) {
		plain := strings.NewReplacer(" ", "", "-", "").Replace(run)
		if n := len(plain); n < 13 || n > 19 {
			continue
		}
		digits := make([]int, len(plain))
		for i, c := range plain {
			digits[i] = int(c - '0')
		}
		if last := len(digits) - 1; checkDigit(digits[:last]) == digits[last] {
			return run
		}
	}
	return ""
}

func checkDigit(digits []int) int {
	sum := 0
	for i := range digits {
		d := digits[len(digits)-1-i]
		if i%2 == 0 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return (10 - sum%10) % 10
}

// plainCard gives a card number written in one piece. Behind "_" it is an
// identifier of ours, behind "+" a telephone number.
func plainCard(s string) string {
	for _, at := range unbroken.FindAllStringIndex(s, -1) {
		before := s[:at[0]]
		if strings.HasSuffix(before, "_") || strings.HasSuffix(before, "+") {
			continue
		}
		if run := cardIn(s[at[0]:at[1]]); run != "" {
			return run
		}
	}
	return ""
}

var unbroken = regexp.MustCompile(`\d+`)
