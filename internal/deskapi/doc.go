// Package deskapi holds the wire forms of the desk's two HTTP APIs: what the
// gateway answers customer channels and what the console answers staff. Servers
// and clients share these types and nothing else.
//
// Invariants: every field is named here on purpose; a record or a view never
// reaches a caller by being encoded whole. Errors are problem documents
// (RFC 9457) with a stable code. Times are UTC in RFC 3339, amounts are minor
// units and a currency.
package deskapi
