package prose_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/prose"
)

// Bugs B16 and B71, case M10: grouping and currencies without a minor unit.
func TestAmountsB16B71(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"₹2,000":                     "200000 INR",
		"Rs.1,000":                   "100000 INR",
		"Rs. 2000":                   "200000 INR",
		"Rs2000":                     "200000 INR",
		"2000rs":                     "200000 INR",
		"2000/-":                     "200000 INR",
		"INR 999.99":                 "99999 INR",
		"₹999.9":                     "99990 INR",
		"₹1,00,000":                  "10000000 INR",
		"₹12,34,567.89":              "123456789 INR",
		"₹1,234,567.89":              "123456789 INR",
		"Rs 1.00.000":                "10000000 INR",
		"1 lakh":                     "10000000 INR",
		"1.5 lakh":                   "15000000 INR",
		"450 rupees":                 "45000 INR",
		"₹२,०००":                     "200000 INR",
		"¥50,000":                    "50000 JPY",
		"50000 yen":                  "50000 JPY",
		"$20 and 30 euros":           "2000 USD, 3000 EUR",
		"A$20, US$30, X$40, paid$50": "2000 AUD, 3000 USD, 5000 USD",
		"KWD\u00a0150.000":           "150000 KWD",
		"₹0.00":                      "0 INR",
		"Rs 500 Rs 600":              "50000 INR, 60000 INR",
		"₹1,0,0":                     "",
		"₹1.000":                     "",
		"¥50.25":                     "",
		"₹99999999999999999999":      "",
		"2000":                       "",
		"TRY 2000 again":             "",
		"₹9,00,00,00,00,00,000 lakh": "",
		"1,0,0 rupees":               "",
	} {
		var got []string
		for _, m := range prose.Read(text).Amounts(8) {
			got = append(got, strings.TrimSpace(strings.Join([]string{itoa(m.GetMinor()), m.GetCurrency()}, " ")))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", text, strings.Join(got, ", "), want)
		}
	}
}

func itoa(n int64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// What the desk writes it can read.
func TestReadsWhatMoneyWrites(t *testing.T) {
	t.Parallel()
	for _, code := range currencies {
		for _, minor := range []int64{0, 5, 99999, 200000, 10000000, 123456789} {
			text := "amount " + money.Format(money.New(minor, code)) + "."
			got := prose.Read(text).Amounts(8)
			if len(got) != 1 || !money.Equal(got[0], money.New(minor, code)) {
				t.Errorf("%q reads as %v", text, got)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Order #8472, twice.":       "w:Order m:# n:8472 m:, w:twice b:.",
		"double-charged don't":      "w:double w:charged w:dont",
		"pay_8472_b ORD-1-":         "i:pay_8472_b i:ORD-1",
		"no. 5 at 10:14 on 1/2/26":  "w:no n:5 w:at s:10:14 w:on s:1/2/26",
		"2x 3rd 8472A":              "n:2 w:x n:3 w:rd i:8472A",
		"8472,9001 1,0,0":           "n:8472 n:9001 n:1,0,0",
		"<b>8472</b> [a](http://x)": "n:8472 w:a m:)",
		"दो बार।":                   "w:दो w:बार b:।",
		"订单8472被":                   "w:订单 n:8472 w:被",
		"naïve":                     "w:naïve",
		"a!? b":                     "w:a b:! w:b",
	} {
		var got []string
		for _, tok := range prose.Read(text).Tokens {
			got = append(got, string("?wnisamb"[tok.Kind])+":"+tok.Raw)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, strings.Join(got, " "), want)
		}
	}
}

func TestEveryDecimalDigitBecomesASCII(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.Is(unicode.Nd, r) {
			continue
		}
		tok := prose.Read(string([]rune{r, r})).Tokens
		if len(tok) != 1 || tok[0].Digits != 2 || tok[0].Raw[0] < '0' || tok[0].Raw[0] > '9' {
			t.Fatalf("digit %U reads as %v", r, tok)
		}
	}
	if got := prose.Read("०१२३४५६७८९ ٠١٢٣٤٥٦٧٨٩ 𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡").Normalised(); got != "0123456789 0123456789 0123456789" {
		t.Errorf("normalised %q", got)
	}
}

// currencies that the desk writes in a way that it reads.
var currencies = []string{"INR", "JPY", "USD", "EUR", "GBP", "KRW", "KWD", "AUD", "CAD", "NZD", "BRL", "HKD", "MXN", "TWD", "XCD", "CNY"}

// FuzzRead: tokens lie in the text and in order, the plain form is plain, and an
// amount that was read is the one that is written for people.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"₹1,00,000.00 x", "a<b>c", "http://", "\xff\u202e1", "1:2/3,4.5", "₹", "x1", "ï1-_",
		"Rs \u0967,\u0966\u0966,\u0966\u0966\u0966", "12,34,567.89 rupees", "1,0,0 1.00.000 INR", "<\u200bb>8472</b>", "don't '8472'", "CA$50 US$50 $50", "5 lakh 2.5 crore 0.1 k yen",
		"order \u202e2748\u202c \ufeff8\u200b4\u20607\u00ad2", "a\x1b[31m\r\nX: y", "![a](http://x) [b](c)", "1e9 INR -5 INR +5 INR", "９９ euros \U0001d7ce yen",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := prose.Read(s)
		end := 0
		for _, tok := range p.Tokens {
			if tok.Start < end || tok.End <= tok.Start || p.Normalised()[tok.Start:tok.End] != tok.Raw || len(tok.Low) != len(tok.Raw) {
				t.Fatalf("token %+v after %d of %q", tok, end, p.Normalised())
			}
			end = tok.End
			if m := tok.Money; m != nil {
				if money.Valid(m) != nil || tok.Kind != prose.Amount {
					t.Fatalf("%q reads as %v", tok.Raw, m)
				}
				if again := prose.Read(money.Format(m)).Amounts(2); slices.Contains(currencies, m.GetCurrency()) && (len(again) != 1 || !money.Equal(again[0], m)) {
					t.Fatalf("%q reads as %v, which is written %q and read as %v", tok.Raw, m, money.Format(m), again)
				}
			}
		}
		again := prose.Read(p.Normalised())
		if again.Normalised() != p.Normalised() {
			t.Fatalf("%q is %q in plain form, and that %q", s, p.Normalised(), again.Normalised())
		}
		if h := again.Hidden; h.Control || h.Markup {
			t.Fatalf("the plain form of %q, %q, hides something: %+v", s, p.Normalised(), h)
		}
		if i := strings.IndexFunc(p.Normalised(), concealed); i >= 0 {
			t.Fatalf("the plain form of %q holds %q", s, p.Normalised()[i:])
		}
	})
}

// concealed are characters that reorder text or are not seen, and digits a
// person may not know.
func concealed(r rune) bool {
	switch {
	case r == '\n':
		return false
	case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u200b', r == '\u2060', r == '\ufeff', r == '\u00ad':
		return true
	}
	return r > '9' && unicode.Is(unicode.Nd, r)
}
