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
