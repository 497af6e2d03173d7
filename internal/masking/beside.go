package masking

import (
	"bytes"
	"slices"
)

// How many tokens may be between a number and its word.
const maxAfter, maxBefore = 6, 4

type kind uint8

const (
	word kind = iota + 1
	number
	// taken is masked: by this pass or, unless it is a card, an earlier one.
	taken
	taggedCard
)

type token struct {
	kind kind
	i, j int
}

func (t token) size() int { return t.j - t.i }

var fillers = set("is", "was", "are", "i", "my", "the", "your", "this", "that", "it", "its", "s", "as", "for", "to", "me", "a", "an", "and", "here",
	"received", "got", "get", "sent", "used", "entered", "gave", "came", "code", "number", "no", "num", "nr", "pin", "value", "id",
	"password", "card", "bank", "in", "on", "of", "with", "hai", "ka", "tha", "from", "which")

// other words say that a number before a code's word is something else.
var other = set("order", "orders", "refund", "ref", "reference", "payment", "amount", "case", "ticket", "invoice", "rs", "inr", "usd", "eur", "gbp", "jpy", "charged", "paid")

func set(words ...string) map[string]bool {
	out := make(map[string]bool, len(words))
	for _, w := range words {
		out[w] = true
	}
	return out
}

// beside finds numbers that the words beside them give away, in order.
func (v *view) beside() []span {
	p := pass{view: v, tokens: v.tokens()}
	p.found = make([]span, 0, 4)
	for k := 0; k < len(p.tokens); {
		by, n := p.phrase(k)
		if n == 0 {
			k++
			continue
		}
		if !p.after(k+n, by) && p.precedable(k) {
			p.before(k-1, by)
		}
		k += n
	}
	// A number after one word may come behind a number before the next.
	slices.SortFunc(p.found, func(a, b span) int { return a.i - b.i })
	return p.found
}

type pass struct {
	*view
	tokens []token
	found  []span
}

func (v *view) tokens() []token {
	out := make([]token, 0, len(v.b)/4+1)
	for i := 0; i < len(v.b); {
		t := token{i: i, j: i + 1}
		switch c := v.b[i]; {
		case letter(c):
			t.kind = word
			for letter(v.byteAt(t.j)) {
				t.j++
			}
		case digit(c):
			t.kind = number
			for digit(v.byteAt(t.j)) {
				t.j++
			}
		case c == '[':
			t.kind, t.j = tag(v.b, i)
		}
		if t.kind != 0 {
			out = append(out, t)
		}
		i = t.j
	}
	return out
}

// tag reads a placeholder.
func tag(b []byte, i int) (k kind, end int) {
	for _, p := range tags {
		if bytes.HasPrefix(b[i:], []byte(p)) {
			if p == card {
				return taggedCard, i + len(p)
			}
			return taken, i + len(p)
		}
	}
	return 0, i + 1
}

// tagEnds reports a placeholder at the end of b.
func tagEnds(b []byte) bool {
	for _, p := range tags {
		if bytes.HasSuffix(b, []byte(p)) {
			return true
		}
	}
	return false
}

// low is the word at k, "" if there is none.
func (p *pass) low(k int) string {
	if k < 0 || k >= len(p.tokens) || p.tokens[k].kind != word {
		return ""
	}
	return string(p.b[p.tokens[k].i:p.tokens[k].j])
}

// phrase says what the n words at k announce.
func (p *pass) phrase(k int) (by string, n int) {
	switch p.low(k) {
	case "cvv", "cvc", "cvn", "csc":
		if t := k + 1; t < len(p.tokens) && p.tokens[t].kind == number && p.tokens[t].size() == 1 && p.tokens[t].i == p.tokens[k].j {
			return cvv, 2 // CVV2
		}
		return cvv, 1
	case "security":
		if p.low(k+1) == "code" {
			return cvv, 2
		}
	case "otp", "otps", "passcode":
		return code, 1
	case "tan", "mtan", "smstan", "phototan", "chiptan", "mpin":
		if p.low(k) != "tan" || p.numberFollows(k+1) { // tan is a colour, too
			return code, 1
		}
	case "code", "pin":
		if p.saysCode(k) {
			return code, 1
		}
	case "sort":
		if p.low(k+1) == "code" {
			return branch, 2
		}
	case "sortcode":
		return branch, 1
	case "one":
		if p.low(k+1) == "time" && secret(p.low(k+2)) {
			return code, 3
		}
	case "onetime":
		if secret(p.low(k + 1)) {
			return code, 2
		}
	case "verification", "authentication", "login":
		if p.low(k+1) == "code" || p.low(k+1) == "pin" {
			if p.low(k-1) == "card" {
				return cvv, 2
			}
			return code, 2
		}
	case "account", "acct":
		return account, 1
	case "ac", "acc":
		if l := p.low(k + 1); l == "no" || l == "number" || l == "num" {
			return account, 2
		}
	case "a":
		if p.low(k+1) == "c" && p.tokens[k+1].i == p.tokens[k].j+1 && p.b[p.tokens[k].j] == '/' {
			return account, 2
		}
	}
	return "", 0
}

// precedable reports a word that people also write behind its number.
func (p *pass) precedable(k int) bool {
	switch p.low(k) {
	case "tan", "code", "pin", "sort", "sortcode":
		return false
	}
	return true
}

func (p *pass) numberFollows(k int) bool {
	for p.low(k) == "is" || p.low(k) == "code" || p.low(k) == "number" || p.low(k) == "was" {
		k++
	}
	return k < len(p.tokens) && (p.tokens[k].kind == number || p.tokens[k].kind == taken)
}

// public codes are no secret: they name an offer, a place or a thing.
var public = set("promo", "promotion", "promotional", "discount", "coupon", "voucher", "gift", "referral", "offer", "zip", "postal", "post", "area", "country", "dialling", "dialing",
	"error", "status", "response", "reason", "product", "item", "order", "tracking", "hsn", "bar", "qr", "colour", "color", "size", "model", "store", "branch", "tax", "city", "source", "booking", "reference", "ref")

// saysCode reports "my code", "the code is", "atm pin"; the word alone says
// nothing.
func (p *pass) saysCode(k int) bool {
	for n := 1; n <= 2; n++ {
		if public[p.low(k-n)] {
			return false
		}
	}
	if p.low(k) == "pin" {
		return p.low(k-1) == "my" && p.low(k+1) != "code" || p.low(k-1) == "atm" || p.low(k-1) == "upi" || p.low(k-1) == "card"
	}
	return p.low(k-1) == "my" || p.low(k-1) == "sms" || p.low(k-1) == "tan" || p.low(k-1) == "pin" && p.low(k-2) == "sms" || p.low(k+1) == "is" || p.low(k+1) == "was"
}

func secret(w string) bool {
	return w == "password" || w == "passcode" || w == "code" || w == "pin"
}

// after masks the number behind a phrase. Whatever is masked already ends the
// search, so that masking again finds no more.
func (p *pass) after(k int, by string) bool {
	for end := min(len(p.tokens), k+maxAfter); k < end; k++ {
		switch t := p.tokens[k]; t.kind {
		case taken:
			return true
		case word:
			if !fillers[p.low(k)] {
				return false
			}
		case number:
			n := p.fits(k, by)
			if n > 0 {
				p.mask(k, n, by)
			}
			return n > 0
		case taggedCard:
		}
	}
	return false
}

// before masks the number ahead of a phrase: 123456 is my OTP.
func (p *pass) before(k int, by string) {
	for end := max(-1, k-maxBefore); k > end; k-- {
		switch p.tokens[k].kind {
		case word:
			if !fillers[p.low(k)] {
				return
			}
		case number:
			if by == account {
				return
			}
			for n := maxGroups; n > 1; n-- {
				if k-n+1 >= 0 && p.fits(k-n+1, by) == n {
					k -= n - 1
					break
				}
			}
			if n := p.fits(k, by); n > 0 && !p.named(k) {
				p.mask(k, n, by)
			}
			return
		default:
			return
		}
	}
}

// named reports that a word ahead of the number says what it is.
func (p *pass) named(k int) bool {
	for n := 1; n <= 3; n++ {
		l := p.low(k - n)
		if other[l] {
			return true
		}
		if !fillers[l] {
			return false
		}
	}
	return false
}

func (p *pass) mask(k, n int, by string) {
	p.found = append(p.found, span{p.tokens[k].i, p.tokens[k+n-1].j, by})
	for ; n > 0; n-- {
		p.tokens[k+n-1].kind = taken
	}
}

// fits says how many tokens at k make a number of the kind that was announced.
func (p *pass) fits(k int, by string) int {
	size := p.tokens[k].size()
	if p.tokens[k].kind != number {
		return 0
	}
	switch by {
	case cvv:
		if n := p.alike(k, 4); size == 1 && (n == 3 || n == 4) && p.plain(k, k+n-1) {
			return n // 1 2 3
		}
		if (size == 3 || size == 4) && p.plain(k, k) {
			return 1
		}
	case branch:
		if n := p.alike(k, 3); size == 2 && n == 3 && p.plain(k, k+2) {
			return n // 12-34-56
		}
		if size == 6 && p.plain(k, k) {
			return 1
		}
	case code:
		if n := p.alike(k, maxDigits/size); n > 1 && n*size >= minDigits && p.plain(k, k+n-1) {
			return n // 482 913
		}
		if size >= 4 && size <= 8 && p.plain(k, k) {
			return 1
		}
	case account:
		n := 1
		for size < 8 && p.joined(k+n) {
			size += p.tokens[k+n].size()
			n++
		}
		for n > 1 && p.joined(k+n) && size+p.tokens[k+n].size() <= 18 {
			size += p.tokens[k+n].size()
			n++
		}
		if size >= 8 && size <= 18 && p.plain(k, k+n-1) {
			return n
		}
	}
	return 0
}

// A one-time code has so many digits, in so many groups at most.
const minDigits, maxDigits, maxGroups = 4, 8, 8

// alike counts the numbers from k on that are as long as it and joined to it,
// at most so many.
func (p *pass) alike(k, most int) int {
	n := 1
	for n < most && p.joined(k+n) && p.tokens[k+n].size() == p.tokens[k].size() {
		n++
	}
	return n
}

// joined reports a number with one space or dash between it and another.
func (p *pass) joined(k int) bool {
	if k < 1 || k >= len(p.tokens) || p.tokens[k].kind != number || p.tokens[k-1].kind != number || p.tokens[k].i != p.tokens[k-1].j+1 {
		return false
	}
	c := p.b[p.tokens[k-1].j]
	return c == ' ' || c == '-'
}

// plain reports that tokens a to b are not part of an amount, a date, an
// identifier or a phone number.
func (p *pass) plain(a, b int) bool {
	i, j := p.tokens[a].i, p.tokens[b].j
	switch c := p.byteAt(i - 1); {
	case c == '_', c == '#', c == '$', c == '+':
		return false
	case letter(c): // written onto its word, it is no identifier
		if by, _ := p.phrase(a - 1); by == "" {
			return false
		}
	case joint(c) && digit(p.byteAt(i-2)) && !p.labelled(a):
		return false
	}
	c := p.byteAt(j)
	return !letter(c) && c != '_' && c != '%' && c != '$' && (!joint(c) || !digit(p.byteAt(j+1)))
}

// labelled reports that the digit before token a is a word's: cvc2:123.
func (p *pass) labelled(a int) bool {
	if a < 2 || p.tokens[a-1].kind != number {
		return false
	}
	by, n := p.phrase(a - 2)
	return by == cvv && n == 2 && p.tokens[a-1].j == p.tokens[a-2].j+1
}

func joint(c byte) bool { return c == '.' || c == ',' || c == ':' || c == '/' || c == '-' }
