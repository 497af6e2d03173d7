package masking_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/masking"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	hidden  = amendsv1.TextFlag_TEXT_FLAG_BIDI_OR_INVISIBLE
	control = amendsv1.TextFlag_TEXT_FLAG_CONTROL_CHARACTERS
	markup  = amendsv1.TextFlag_TEXT_FLAG_MARKUP
	masked  = amendsv1.TextFlag_TEXT_FLAG_MASKED
)

func TestMasks(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"card 4111111111111111 charged twice":        "card [card] charged twice",
		"4111 1111 1111 1111":                        "[card]",
		"4111-1111-1111-1111.":                       "[card].",
		"4111.1111.1111.1111":                        "[card]",
		"4111 - 1111 - 1111 - 1111":                  "[card]",
		"3782 822463 10005 amex":                     "[card] amex",
		"order 8472 card 4111 1111 1111 1111, twice": "order 8472 card [card], twice",
		"visa4111111111111111":                       "visa[card]",
		"4111\u00a01111\u20111111\u20131111":         "[card]",
		"\u0664\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661": "[card]",
		"\uff14\uff11\uff11\uff11 1111 1111 1111":                                                          "[card]",
		"4111\u200b1111\u200d1111\u20601111":                                                               "[card]",
		"4111\x001111\x1b1111 1111":                                                                        "[card]",
		"card_4111111111111111":                                                                            "card_[card]",

		"4111\n1111\n1111\n1111":                            "[card]",
		"4111\r\n1111\r\n1111\r\n1111":                      "[card]",
		"4111/1111/1111/1111":                               "[card]",
		"4111 / 1111 / 1111 / 1111":                         "[card]",
		"4111_1111_1111_1111":                               "[card]",
		"4111,1111,1111,1111":                               "[card]",
		"4111, 1111, 1111, 1111":                            "[card]",
		"4111|1111|1111|1111":                               "[card]",
		"4111 · 1111 · 1111 · 1111":                         "[card]",
		"**4111** **1111** **1111** **1111**":               "**[card]**",
		"<b>4111</b>1111<i>1111</i> 1111":                   "<b>[card]",
		"<b>4111</b><b>1111</b><b>1111</b><b>1111</b> card": "<b>[card]</b> card",
		"<h1>4111</h1> 1111&nbsp;1111<br/>1111":             "<h1>[card]",
		"3782/822463/10005":                                 "[card]",
		"41/11/11/11/11/11/11/11":                           "[card]",

		"cvv 123 order 8472":              "cvv [cvv] order 8472",
		"CVV: 1234":                       "CVV: [cvv]",
		"cvc2 is 123":                     "cvc2 is [cvv]",
		"cvv123":                          "cvv[cvv]",
		"my security code is 987":         "my security code is [cvv]",
		"987 is my CVV":                   "[cvv] is my CVV",
		"cvc2:123":                        "cvc2:[cvv]",
		"cvc2: 123":                       "cvc2: [cvv]",
		"cvv is 1 2 3":                    "cvv is [cvv]",
		"cvv: 1-2-3-4":                    "cvv: [cvv]",
		"1 2 3 is my cvv":                 "[cvv] is my cvv",
		"c\u200bvv 12\u200b3":             "c\u200bvv [cvv]",
		"cvv for 4111111111111111 is 123": "cvv for [card] is [cvv]",

		"OTP 482913":                               "OTP [code]",
		"the otp i received is 4829":               "the otp i received is [code]",
		"One-Time Password: 482 913":               "One-Time Password: [code]",
		"otp: 48 29 13":                            "otp: [code]",
		"otp 4 8 2 9 1 3":                          "otp [code]",
		"48 29 13 is my otp":                       "[code] is my otp",
		"my code is 482913":                        "my code is [code]",
		"the code was 48-29-13":                    "the code was [code]",
		"TAN 482913":                               "TAN [code]",
		"TAN: 482 913":                             "TAN: [code]",
		"mpin 4829":                                "mpin [code]",
		"my pin is 4829":                           "my pin is [code]",
		"verification code 48291377":               "verification code [code]",
		"482913 is your one time password":         "[code] is your one time password",
		"otp \u096a\u096e\u0968\u096f\u0967\u0969": "otp [code]",

		"account number 123456789":            "account number [account]",
		"account 12345678":                    "account [account]",
		"account: 1234 5678":                  "account: [account]",
		"sort code 12-34-56":                  "sort code [bank]",
		"sort code: 123456":                   "sort code: [bank]",
		"sort code 12 34 56 account 12345678": "sort code [bank] account [account]",
		"a/c no. 0012 3456 7890 12":           "a/c no. [account]",
		"A/C 123456789012345678":              "A/C [account]",
		"DE89 3704 0044 0532 0130 00 ok":      "[account] ok",
		"gb82west12345698765432":              "[account]",
		"IFSC HDFC0001234":                    "IFSC [bank]",
		"4111111111111111HDFC0001234":         "[card]HDFC0001234",
	} {
		got, flags := masking.Text(in)
		if got != want || !slices.Contains(flags, masked) {
			t.Errorf("Text(%q) = %q %v, want %q", in, got, flags, want)
		}
		if again, f := masking.Text(got); again != got || slices.Contains(f, masked) {
			t.Errorf("Text(%q) = %q again", got, again)
		}
	}
}

func TestLeavesLookAlikes(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"",
		"charged twice on order 8472, 2000.00 INR on 2026-03-10",
		"card 4111111111111112",
		"order 8472 2026-03-12 10:14:00 and 2026-03-13 11:20",
		"pay_4111111111111111 and rfnd_4111111111111111",
		"pay_8472_a pay_8472_b",
		"call +91 98765 43210 or 9876543210 or +919876543210",
		"order 123456789012 reference 123456789",
		"Rs 12,34,567.89 and 1.00.000",
		"I never shared my cvv. Refund order 8472",
		"order 8472 otp never came",
		"order number 8472 is for otp",
		"otp for order 8472",
		"otp 12/03/2026",
		"otp ₹500000 and otp #482913 and otp 4829a",
		"code 482913",
		"security deposit 123",
		"account blocked, order 123456789",
		"account 1234567",
		"GB83 WEST 1234 5698 7654 32",
		"HDFC1001234 hdfc0001234 XHDFC0001234",
		"41111111111111111111",
		"order 8472\n2000\n2000\n2026",
		"orders 4111, 1112, 1113, 1114",
		"paid 12/03/2026 10/14/2026 and 12.03.2026 10:14:00",
		"₹4,11,111.11, ₹11,11,111.11",
		"$4111 $1111 $1111 $1111",
		"promo code is 482913 and the error code was 48291",
		"your order code is 8472",
		"8472 my code is wrong",
		"pin code 482913 sort 12-34-56",
		"tan shoes, order 482913",
		"sort code of order 482913",
		"my account was opened 12.03.2026",
		"<h1>4111</h1> order <b>1111</b>",
		"नमस्ते order ८४७२ \u202e2748\u202c 👩\u200d👩",
	} {
		if got, flags := masking.Text(in); got != in || slices.Contains(flags, masked) {
			t.Errorf("Text(%q) = %q %v", in, got, flags)
		}
	}
}

func TestCleansAndFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, want string
		flags    []amendsv1.TextFlag
	}{
		{"a\tb\nc", "a\tb\nc", nil},
		{"a\r\nb", "a\nb", nil},
		{"a\rb", "a\nb", []amendsv1.TextFlag{control}},
		{"order 84\x0072", "order 84 72", []amendsv1.TextFlag{control}},
		{"a \x1b[2J\u0085", "a [2J", []amendsv1.TextFlag{control}},
		{"a\xff", "a\ufffd", []amendsv1.TextFlag{control}},
		{"<b>x</b>", "<b>x</b>", []amendsv1.TextFlag{markup}},
		// M12, M16
		{"order \u202e2748\u202c please", "order \u202e2748\u202c please", []amendsv1.TextFlag{hidden}},
		{"Order 8472\r\nX-Tenant: other\x00\x1b[2J\x1b[31m charged", "Order 8472\nX-Tenant: other[2J[31m charged", []amendsv1.TextFlag{control}},
		{"\u202e4111111111111111\u202c", "\u202e[card]\u202c", []amendsv1.TextFlag{hidden, masked}},
	} {
		if got, flags := masking.Text(c.in); got != c.want || !slices.Equal(flags, c.flags) {
			t.Errorf("Text(%q) = %q %v, want %q %v", c.in, got, flags, c.want, c.flags)
		}
	}
}

// TestNoCardSurvives hides card numbers in any text, script and grouping.
func TestNoCardSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.SliceOfN(rapid.IntRange(0, 9), 12, 18).Draw(t, "digits")
		digits = append(digits, checkDigit(digits))
		zero := rapid.SampledFrom([]rune{'0', '\u0660', '\u0966', '\uff10', '\U0001d7ce'}).Draw(t, "script")
		gaps := rapid.SampledFrom([][]string{{""}, {"", " "}, {"", "-"}, {"", "\u200b", " ", "\u2013", "\u202e", "\u2060"}}).Draw(t, "gaps")
		var number strings.Builder
		for i, d := range digits {
			if i > 0 {
				number.WriteString(rapid.SampledFrom(gaps).Draw(t, "gap"))
			}
			number.WriteRune(zero + rune(d))
		}
		if year.MatchString(ascii(number.String())) {
			t.Skip("holds a date")
		}
		words := rapid.SampledFrom([]string{"", "card ", "no. ", "order 8472, ", "visa", "cvv 123 ", "x\n"})
		in := words.Draw(t, "before") + number.String() + rapid.SampledFrom([]string{"", ".", " cvv 123", " thanks"}).Draw(t, "after")
		got, flags := masking.Text(in)
		if !strings.Contains(got, "[card]") || !slices.Contains(flags, masked) {
			t.Fatalf("Text(%q) = %q %v", in, got, flags)
		}
		if run := cardIn(ascii(got)); run != "" {
			t.Fatalf("Text(%q) = %q holds %s", in, got, run)
		}
	})
}

// TestNoIssuedCardSurvives writes numbers as issuers give them in groups that
// other marks part.
func TestNoIssuedCardSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := []int{rapid.SampledFrom([]int{4, 5, 6}).Draw(t, "issuer")}
		digits = append(digits, rapid.SliceOfN(rapid.IntRange(0, 9), 14, 14).Draw(t, "digits")...)
		digits = append(digits, checkDigit(digits))
		by := rapid.SampledFrom([]string{"\n", "\r\n", "/", "_", ",", ", ", "|", " / ", "\n\n", "~", "\u00b7", "</b>", "<b>", "</b> <b>", "<br/>", "&nbsp;", "**"}).Draw(t, "by")
		var number strings.Builder
		for i, d := range digits {
			if i > 0 && i%4 == 0 {
				number.WriteString(by)
			}
			number.WriteRune('0' + rune(d))
		}
		in := "my card " + number.String() + " was charged"
		if got, _ := masking.Text(in); got != "my card [card] was charged" {
			t.Fatalf("Text(%q) = %q", in, got)
		}
	})
}

// TestOtherTextStays mixes short numbers and words that announce nothing.
func TestOtherTextStays(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"order", "8472,", "refund.", "2000.00;", "₹500:", "\u202e", "\u200b", "नमस्ते", "pay_8472_a,", "👩\u200d👩", "[x]", "<b>", "otp", "cvv", "account", "\n", "\t"}),
		rapid.StringMatching(`[a-z]{1,8}|[0-9]{1,2},`),
	)
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), " stop ")
		if got, _ := masking.Text(in); got != in {
			t.Fatalf("Text(%q) = %q", in, got)
		}
	})
}

func TestHoldsForAnyText(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"otp ", "cvv ", "cvv2", "account ", "a/c ", "no ", "is ", "my ", "[card]", "[cvv]", "one time password ", " ", "-", "\x00", "\xff", "\r", "4111111111111111", "DE89370400440532013000", "HDFC0001234", "my code is ", "sort code ", "tan ", "<b>", "</h1>", "&nbsp;", "/", "_", "\n", "12-34-56", "1 2 3 "}),
		rapid.StringMatching(`[0-9]{1,9}[ -]?`),
	)
	rapid.Check(t, func(t *rapid.T) {
		check(t, strings.Join(rapid.SliceOfN(piece, 0, 25).Draw(t, "pieces"), ""))
	})
}

// FuzzText also looks for what must never be left: a run of digits that is
// a card number.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"card 4111 1111 1111 1111 cvv 123", "otp 482 913", "482913 is my otp", "a/c 1234 5678 9012", "GB82 WEST 1234 5698 7654 32", "HDFC0001234", "a\x00b\r\xff\u202e",
		"\u096a\u0967\u0967\u0967 \u0967\u0967\u0967\u0967 \u0967\u0967\u0967\u0967 \u0967\u0967\u0967\u0967", "4111\u200b1111\u202e1111\u20601111", "<b>5500 0000 0000 0004</b>",
		"order 8472\r\nX-Tenant: other\x1b[31m 378282246310005", "2026-03-12 4111-1111-1111-1111 12-03-2026", "pay_4111111111111111 x4111111111111111", "cvc2: 123 otp is 4829",
		"4111\n1111/1111_1111", "<b>4111</b>1111<h1>1111</h1>,1111", "cvc2:123 cvv 1 2 3", "otp: 48 29 13, tan 482 913", "my code is 482913 sort code 12-34-56 account 12345678",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		check(t, s)
		got, _ := masking.Text(s)
		if run := plainCard(ascii(got)); run != "" {
			t.Fatalf("Text(%q) = %q holds %s", s, got, run)
		}
	})
}

func check(t interface{ Fatalf(string, ...any) }, in string) {
	got, flags := masking.Text(in)
	if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		t.Fatalf("Text(%q) = %q is not clean", in, got)
	}
	if bound := 3 * len(in); len(got) > bound || utf8.ValidString(in) && len(got) > 2*len(in) {
		t.Fatalf("Text(%q) has %d bytes", in, len(got))
	}
	for i, f := range flags {
		if slices.Contains(flags[:i], f) {
			t.Fatalf("Text(%q) flags %v", in, flags)
		}
	}
	if again, f := masking.Text(got); again != got || slices.Contains(f, masked) || slices.Contains(f, control) {
		t.Fatalf("Text(%q) = %q, then %q %v", in, got, again, f)
	}
}

func BenchmarkText(b *testing.B) {
	for name, s := range map[string]string{
		"typical": "Hello, I was charged twice for order 8472 on 10 March, please refund the second payment of 2000 INR.",
		"masked":  "Hello, card 4111 1111 1111 1111 cvv 123 was charged twice for order 8472, my otp was 482913, please help",
		"large":   strings.Repeat("1 2-", 4096),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				masking.Text(s)
			}
		})
	}
}
