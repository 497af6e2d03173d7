package readmodel

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/amends-dev/amends/internal/ident"
)

// placeDigits holds milliseconds since 1970 until the year 10889, in hex.
const placeDigits = 12

// placeOf is where a case stands in its lists, which are in the order of bytes.
func placeOf(e Entry) string {
	return fmt.Sprintf("%0*x:%s", placeDigits, min(max(e.OpenedAt.UnixMilli(), 0), 1<<(4*placeDigits)-1), e.CaseID)
}

func caseOf(place string) string { return place[min(placeDigits+1, len(place)):] }

// Cursor is a position in a list of cases; the zero value is its beginning.
type Cursor struct{ place string }

// IsZero tells the beginning of a list, and behind a page its end.
func (c Cursor) IsZero() bool { return c.place == "" }

// max is the bound, exclusive, of what follows.
func (c Cursor) max() string {
	if c.IsZero() {
		return "+"
	}
	return "(" + c.place
}

// min is max for a list that is read from its oldest case on.
func (c Cursor) min() string {
	if c.IsZero() {
		return "-"
	}
	return "(" + c.place
}

// String gives the cursor as an opaque token, empty for the zero value.
func (c Cursor) String() string { return base64.RawURLEncoding.EncodeToString([]byte(c.place)) }

// ParseCursor reads what String gave.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	if len(s) > base64.RawURLEncoding.EncodedLen(placeDigits+1+ident.MaxToken) {
		return Cursor{}, ErrCursor
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return Cursor{}, ErrCursor
	}
	at, id, ok := strings.Cut(string(raw), ":")
	if !ok || len(at) != placeDigits || ident.Token(id) != nil {
		return Cursor{}, ErrCursor
	}
	if _, err := strconv.ParseUint(at, 16, 64); err != nil || strings.ToLower(at) != at {
		return Cursor{}, ErrCursor
	}
	c := Cursor{string(raw)}
	if c.String() != s { // the decoder skips line breaks
		return Cursor{}, ErrCursor
	}
	return c, nil
}
