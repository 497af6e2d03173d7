package money

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bojanz/currency"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var (
	// ErrCurrency marks a currency that is unknown, or not the expected one.
	ErrCurrency = errors.New("currency mismatch")
	// ErrOverflow marks a sum that does not fit.
	ErrOverflow = errors.New("amount overflow")
)

// New gives an amount in minor units (paise, cents, yen).
func New(minor int64, code string) *amendsv1.Money {
	return &amendsv1.Money{Minor: minor, Currency: code}
}

// Valid checks that an amount is present, not negative and in a known currency.
func Valid(m *amendsv1.Money) error {
	switch {
	case m == nil:
		return fmt.Errorf("%w: no amount", ErrCurrency)
	case !currency.IsValid(m.GetCurrency()):
		return fmt.Errorf("%w: %q is not an ISO 4217 code", ErrCurrency, m.GetCurrency())
	case m.GetMinor() < 0:
		return fmt.Errorf("amount %d is negative", m.GetMinor())
	}
	return nil
}

// Parse reads a decimal in a currency, such as 450 or 450.00, exactly: it
// refuses more digits than the currency has, signs, grouping and exponents.
func Parse(text, code string) (*amendsv1.Money, error) {
	digits, ok := currency.GetDigits(code)
	if !ok {
		return nil, fmt.Errorf("%w: %q is not an ISO 4217 code", ErrCurrency, code)
	}
	whole, part, dotted := strings.Cut(text, ".")
	if whole == "" || dotted && part == "" || len(part) > int(digits) || strings.Trim(whole+part, "0123456789") != "" {
		return nil, fmt.Errorf("%q is not an amount in %s", text, code)
	}
	minor, err := strconv.ParseInt(whole+part+strings.Repeat("0", int(digits)-len(part)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q %s: %w", text, code, ErrOverflow)
	}
	return New(minor, code), nil
}

// Add gives a + b.
func Add(a, b *amendsv1.Money) (*amendsv1.Money, error) {
	if err := same(a, b); err != nil {
		return nil, err
	}
	if b.GetMinor() > 0 && a.GetMinor() > math.MaxInt64-b.GetMinor() {
		return nil, ErrOverflow
	}
	return New(a.GetMinor()+b.GetMinor(), a.GetCurrency()), nil
}

// Compare gives -1, 0 or 1 as a is below, equal to or above b.
func Compare(a, b *amendsv1.Money) (int, error) {
	if err := same(a, b); err != nil {
		return 0, err
	}
	switch {
	case a.GetMinor() < b.GetMinor():
		return -1, nil
	case a.GetMinor() > b.GetMinor():
		return 1, nil
	}
	return 0, nil
}

// Equal reports whether two amounts agree in number and currency.
func Equal(a, b *amendsv1.Money) bool {
	return a.GetMinor() == b.GetMinor() && a.GetCurrency() == b.GetCurrency()
}

func same(a, b *amendsv1.Money) error {
	if a.GetCurrency() != b.GetCurrency() {
		return fmt.Errorf("%w: %q and %q", ErrCurrency, a.GetCurrency(), b.GetCurrency())
	}
	return nil
}

// locales name the grouping people of a currency expect; lakh grouping for INR.
var locales = map[string]string{"INR": "en-IN", "USD": "en-US", "EUR": "en-IE", "GBP": "en-GB", "JPY": "en-JP"}

// Format writes an amount for people: ₹2,000.00, ₹1,00,000.00, ¥50,000.
// An amount in an unknown currency is written as a number and its code.
func Format(m *amendsv1.Money) string {
	code := m.GetCurrency()
	amount, err := currency.NewAmountFromInt64(m.GetMinor(), code)
	if err != nil {
		return strconv.FormatInt(m.GetMinor(), 10) + " minor units of " + strconv.Quote(code)
	}
	id, ok := locales[code]
	if !ok {
		id = "en"
	}
	f := currency.NewFormatter(currency.NewLocale(id))
	f.CurrencyDisplay = currency.DisplaySymbol
	f.SymbolMap["JPY"], f.SymbolMap["INR"] = "¥", "₹"
	return f.Format(amount)
}
