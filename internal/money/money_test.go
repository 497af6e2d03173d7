package money_test

import (
	"errors"
	"math"
	"testing"

	"github.com/amends-dev/amends/internal/money"
)

// Bugs B16 and B71: zero-decimal currencies and lakh grouping.
func TestFormatB16B71(t *testing.T) {
	for _, c := range []struct {
		minor int64
		code  string
		want  string
	}{
		{200000, "INR", "₹2,000.00"},
		{99999, "INR", "₹999.99"},
		{10000000, "INR", "₹1,00,000.00"},
		{123456789, "INR", "₹12,34,567.89"},
		{50000, "JPY", "¥50,000"},
		{50000, "KRW", "₩50,000"},
		{0, "INR", "₹0.00"},
		{150000, "KWD", "KWD\u00a0150.000"},
		{5, "XX1", `5 minor units of "XX1"`},
	} {
		if got := money.Format(money.New(c.minor, c.code)); got != c.want {
			t.Errorf("Format(%d %s) = %q, want %q", c.minor, c.code, got, c.want)
		}
	}
}

func TestArithmeticRefusesOtherCurrenciesAndOverflow(t *testing.T) {
	if _, err := money.Add(money.New(1, "INR"), money.New(1, "JPY")); !errors.Is(err, money.ErrCurrency) {
		t.Errorf("Add of two currencies: %v", err)
	}
	if _, err := money.Add(money.New(math.MaxInt64, "INR"), money.New(1, "INR")); !errors.Is(err, money.ErrOverflow) {
		t.Errorf("Add over the end: %v", err)
	}
	if _, err := money.Compare(money.New(1, "INR"), money.New(1, "USD")); !errors.Is(err, money.ErrCurrency) {
		t.Errorf("Compare of two currencies: %v", err)
	}
	if c, err := money.Compare(money.New(100000, "INR"), money.New(100000, "INR")); c != 0 || err != nil {
		t.Errorf("Compare equal = %d, %v", c, err)
	}
	if money.Valid(money.New(-1, "INR")) == nil || money.Valid(money.New(1, "ZZZ")) == nil || money.Valid(nil) == nil {
		t.Error("Valid accepted a bad amount")
	}
}

func TestParseIsExact(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]int64{
		{"450", "INR"}: 45000, {"450.00", "INR"}: 45000, {"450.5", "INR"}: 45050, {"0.01", "INR"}: 1, {"50000", "JPY"}: 50000, {"1.234", "KWD"}: 1234,
	} {
		if got, err := money.Parse(in[0], in[1]); err != nil || got.GetMinor() != want || got.GetCurrency() != in[1] {
			t.Errorf("%v: %v, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range [][2]string{
		{"", "INR"},
		{".5", "INR"},
		{"5.", "INR"},
		{"450.001", "INR"},
		{"-450", "INR"},
		{"+450", "INR"},
		{"1,000", "INR"},
		{"1e3", "INR"},
		{"5.0", "JPY"},
		{"99999999999999999999", "INR"},
		{"450", "XXQ"},
		{"٤٥٠", "INR"},
		{"450 ", "INR"},
	} {
		if got, err := money.Parse(in[0], in[1]); err == nil {
			t.Errorf("%v was read as %v", in, got)
		}
	}
}
