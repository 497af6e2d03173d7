package prose

import (
	"math"
	"strings"

	"github.com/bojanz/currency"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// signs and names of currencies, as people write them. ¥ is read as yen.
var names = map[string]string{
	"₹": "INR", "rs": "INR", "inr": "INR", "rupee": "INR", "rupees": "INR", "₨": "INR", "रुपये": "INR", "रुपए": "INR",
	"¥": "JPY", "￥": "JPY", "jpy": "JPY", "yen": "JPY", "円": "JPY",
	"$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD",
	"€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
	"£": "GBP", "gbp": "GBP", "quid": "GBP",
	"₩": "KRW", "krw": "KRW", "won": "KRW",
}

// prefixed are signs that several currencies share, with the letters that tell
// which: A$ is no US dollar. A sign behind other letters of a country is none
// that is known.
var prefixed = map[string]string{
	"us$": "USD", "a$": "AUD", "ca$": "CAD", "nz$": "NZD", "r$": "BRL", "hk$": "HKD", "mx$": "MXN", "nt$": "TWD", "ec$": "XCD", "s$": "SGD",
	"jp¥": "JPY", "cn¥": "CNY",
}

// after are names that people write behind the number only.
var after = map[string]bool{"rupee": true, "rupees": true, "yen": true, "dollar": true, "dollars": true, "euro": true, "euros": true, "quid": true, "won": true, "रुपये": true, "रुपए": true, "円": true}

// words are ISO codes that are also words.
var words = map[string]bool{"ALL": true, "TRY": true, "TOP": true, "CUP": true, "PEN": true, "MOP": true, "GEL": true, "BAM": true, "SOS": true, "ANG": true}

// scales multiply; INR is meant when no currency is named.
var scales = map[string]int64{
	"lakh": 1e5, "lakhs": 1e5, "lac": 1e5, "lacs": 1e5, "crore": 1e7, "crores": 1e7, "लाख": 1e5,
	"thousand": 1e3, "k": 1e3, "hundred": 100, "million": 1e6,
}

// amounts turns numbers with a currency beside them into Amounts. The currency
// tokens stay.
func (t *Text) amounts() {
	for i := range t.Tokens {
		tok := &t.Tokens[i]
		if tok.Kind != Number {
			continue
		}
		scale, next := int64(1), i+1
		if next < len(t.Tokens) && scales[t.Tokens[next].Low] > 0 {
			scale = scales[t.Tokens[next].Low]
			next++
		}
		code := t.before(i)
		if code == "" {
			code = t.behind(next)
		}
		if code == "" && scale >= 1e5 && scale != 1e6 {
			code = "INR"
		}
		if code == "" {
			continue
		}
		tok.Kind = Amount
		if minor, ok := Minor(tok.Raw, code, scale); ok {
			tok.Money = money.New(minor, code)
		}
	}
}

// before gives the currency written before token i.
func (t *Text) before(i int) string {
	if i == 0 {
		return ""
	}
	p := t.Tokens[i-1]
	if (p.Low == "$" || p.Low == "¥") && i > 1 {
		if c := t.Tokens[i-2]; c.Kind == Word && c.End == p.Start && len(c.Raw) <= 2 {
			return prefixed[c.Low+p.Low]
		}
	}
	if code := names[p.Low]; code != "" && !after[p.Low] {
		return code
	}
	if p.Kind == Word && len(p.Raw) == 3 && currency.IsValid(p.Raw) && !words[p.Raw] {
		return p.Raw
	}
	return ""
}

// behind gives the currency written at token i, behind a number.
func (t *Text) behind(i int) string {
	if i >= len(t.Tokens) {
		return ""
	}
	p := t.Tokens[i]
	switch {
	case p.Low == "/" && strings.HasPrefix(t.raw[p.Start:], "/-"): // 2000/-
		return "INR"
	case p.Kind == Mark && names[p.Low] != "":
		// ₹500 ₹600: the sign belongs to the number behind it.
		if i+1 < len(t.Tokens) && t.Tokens[i+1].Kind == Number && t.Tokens[i+1].Start == p.End {
			return ""
		}
		return names[p.Low]
	case p.Kind == Word && names[p.Low] != "":
		if !after[p.Low] && i+1 < len(t.Tokens) && t.Tokens[i+1].Kind == Number && i > 0 && t.Tokens[i-1].End < p.Start {
			return ""
		}
		return names[p.Low]
	case p.Kind == Word && len(p.Raw) == 3 && currency.IsValid(p.Raw) && !words[p.Raw]:
		return p.Raw
	}
	return ""
}

// groups reports digit groups of western (1,234,567) or lakh (12,34,567) form.
func groups(g []string) bool {
	n := len(g)
	if n < 2 || len(g[n-1]) != 3 || g[0] == "" || len(g[0]) > 3 {
		return false
	}
	lakh := len(g[0]) <= 2
	western := true
	for _, part := range g[1 : n-1] {
		lakh = lakh && len(part) == 2
		western = western && len(part) == 3
	}
	return western || lakh
}

// Minor reads a written number as minor units of a currency, times scale. It
// knows western, lakh and dotted grouping; it does not guess: 1,0,0 and 1.000
// are no numbers.
func Minor(s, code string, scale int64) (int64, bool) {
	digits, ok := currency.GetDigits(code)
	if !ok {
		return 0, false
	}
	var whole, frac string
	switch dots, commas := strings.Count(s, "."), strings.Count(s, ","); {
	case dots > 1 && commas == 0: // 1.00.000
		if !groups(strings.Split(s, ".")) {
			return 0, false
		}
		whole = strings.ReplaceAll(s, ".", "")
	case dots <= 1:
		whole, frac, _ = strings.Cut(s, ".")
		if commas > 0 {
			if !groups(strings.Split(whole, ",")) {
				return 0, false
			}
			whole = strings.ReplaceAll(whole, ",", "")
		}
	default:
		return 0, false
	}
	if scale == 1 && len(frac) > int(digits) || len(frac) > 6 {
		return 0, false
	}
	v, ok := integer(whole + frac)
	if !ok {
		return 0, false
	}
	return scaled(v, len(frac), int(digits), scale)
}

// scaled gives v / 10^decimals * scale * 10^digits, if that is whole and fits.
func scaled(v int64, decimals, digits int, scale int64) (int64, bool) {
	div := int64(1)
	for range digits - decimals {
		scale *= 10
	}
	for range decimals - digits {
		div *= 10
	}
	if v > math.MaxInt64/scale || v*scale%div != 0 {
		return 0, false
	}
	minor := v * scale / div
	return minor, minor < maxMinor
}

// maxFigures is how many figures fit into an int64 whatever they are. No amount
// has more, its minor units included, so that each can be read as it is written.
const (
	maxFigures       = 18
	maxMinor   int64 = 1e18
)

func integer(s string) (int64, bool) {
	if s == "" || len(s) > maxFigures {
		return 0, false
	}
	var v int64
	for _, c := range []byte(s) {
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// Amounts gives the amounts that parse, in order, at most limit.
func (t Text) Amounts(limit int) []*amendsv1.Money {
	var out []*amendsv1.Money
	for _, tok := range t.Tokens {
		if tok.Money != nil && len(out) < limit {
			out = append(out, tok.Money)
		}
	}
	return out
}
