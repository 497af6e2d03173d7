package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/deskapi"
)

// FuzzHeaders: a Last-Event-ID is the version it names or nothing, and an
// Idempotency-Key is taken as it is or not at all.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{"7", "", "007", "-1", "+1", "1e3", "18446744073709551615", "18446744073709551616", "7\r\nid: 8", "\u0967", "k-1", "a b", "k\u202e1", strings.Repeat("k", 129), "0x7", "1_000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &http.Request{Header: http.Header{deskapi.HeaderIdempotencyKey: {s}}}
		r.Header.Set(deskapi.HeaderLastEventID, s)
		if got := lastEventID(r); got != 0 {
			if strings.TrimLeft(s, "0") != strconv.FormatUint(got, 10) {
				t.Fatalf("Last-Event-ID %q is taken for %d", s, got)
			}
		}
		key, problem := idempotencyKey(r)
		if problem == nil && (key != s || key == "" || len(key) > 128 || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })) {
			t.Fatalf("Idempotency-Key %q is taken for %q", s, key)
		}
		if problem != nil && problem.Status != http.StatusBadRequest {
			t.Fatalf("Idempotency-Key %q is refused with %v", s, problem)
		}
	})
}

// FuzzDecodeCancel: only what says nothing is a withdrawal.
func FuzzDecodeCancel(f *testing.F) {
	for _, s := range []string{"", "{}", " { } ", "null", "[]", `{"a":1}`, "{}{}", "{\"a\":\"\xff\"}", "{", "{}x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var members map[string]any
		empty := len(body) == 0 || json.Unmarshal(body, &members) == nil && members != nil && len(members) == 0
		if problem := decodeCancel(body); (problem == nil) != empty {
			t.Fatalf("%q is judged %v", body, problem)
		}
	})
}
