// Package money computes with amounts in a currency's minor unit: integers,
// never floats. It refuses to mix currencies and to overflow, and it formats
// for people with the currency's own digits and grouping.
package money
