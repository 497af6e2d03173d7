package bus

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// B42: with replicas a lost compare-and-set has a code of its own.
func TestBothConflictCodesB42(t *testing.T) {
	t.Parallel()
	classes := map[string]error{
		"conflict": ErrConflict, "not found": ErrNotFound, "missing": ErrMissing,
		"uncertain": ErrUncertain, "denied": ErrDenied, "unavailable": ErrUnavailable,
	}
	for code, want := range map[int]string{10071: "conflict", 10164: "conflict", 10037: "not found", 10059: "missing", 10014: "missing", 10054: ""} {
		err := fmt.Errorf("publish: %w", &APIError{Status: 400, Code: code})
		for class, target := range classes {
			if got := errors.Is(err, target); got != (class == want) {
				t.Errorf("code %d is %s: %t", code, class, got)
			}
		}
	}
}

// B60: no long run of digits survives, however it is written.
func TestMaskB60(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"order 8472 of 2 captures":  "order 8472 of 2 captures",
		"4111111111111111":          "[masked]",
		"card 4111 1111 1111 1111.": "card [masked].",
		"card 4111-1111-1111-1111":  "card [masked]",
		"iban 12/34/56/78/9 end":    "iban [masked] end",
		"12345678 is eight":         "12345678 is eight",
		"123456789 is nine":         "[masked] is nine",
		"४१११११११११११११११": "[masked]",
		"1  234567890":                   "1  [masked]",
		"bad \xff utf":                   "bad ? utf",
		strings.Repeat("x", 600):         strings.Repeat("x", 512),
		"a1b2c3d4e5f6a7b8c9d0 is a hash": "a1b2c3d4e5f6a7b8c9d0 is a hash",
	} {
		if got := Mask(in); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		out := Mask(rapid.StringMatching(`([a-z:]|[0-9][ ./_-]?){0,60}`).Draw(t, "text"))
		if !utf8.ValidString(out) || utf8.RuneCountInString(out) > maxMasked {
			t.Fatalf("%q is not bounded text", out)
		}
		for i := range out {
			if _, digits := digitRun([]rune(out[i:])); digits >= maskFrom {
				t.Fatalf("%q keeps a long run of digits", out)
			}
		}
	})
}

func TestHeldBoundsEachCaseByItself(t *testing.T) {
	t.Parallel()
	h := newHeld(24) // three for each case
	now := time.Unix(0, 0)
	for i := range 3 {
		if !h.take("a", now, now.Add(time.Duration(i+1)*time.Second)) {
			t.Fatalf("retry %d of a case refused", i)
		}
	}
	if h.take("a", now, now.Add(time.Second)) {
		t.Error("a fourth one was taken")
	}
	if !h.take("b", now, now.Add(time.Second)) {
		t.Error("another case was refused")
	}
	if !h.take("a", now.Add(time.Second), now.Add(time.Hour)) {
		t.Error("refused though one had come back")
	}
	for i := range 10 * heldSweep {
		if !h.take(fmt.Sprint(i), now.Add(time.Duration(i)*time.Minute), now.Add(time.Duration(i)*time.Minute+time.Second)) {
			t.Fatal("a new case was refused")
		}
	}
	if n := len(h.cases); n > 2*heldSweep {
		t.Errorf("%d cases are remembered", n)
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, subj string
		want          bool
	}{
		{"a.*.c", "a.b.c", true},
		{"a.*.c", "a.b.d", false},
		{"a.*", "a.b.c", false},
		{"a.*.*", "a.b", false},
		{"a.>", "a.b.c", true},
		{"a.>", "a", false},
		{"a.*", "a.>", false},
		{"a.*", "a.*", true},
		{"a-*", "a-b", false},
	} {
		if got := covers(c.pattern, c.subj); got != c.want {
			t.Errorf("covers(%q, %q) = %t", c.pattern, c.subj, got)
		}
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	for _, c := range []struct {
		err    error
		kind   outcomeKind
		reason string
	}{
		{cause, outcomeRetry, ""},
		{Retry(cause), outcomeRetry, ""},
		{Reject("r", cause), outcomeReject, "r"},
		{fmt.Errorf("at: %w", Reject("r", cause)), outcomeReject, "r"},
		{Retry(fmt.Errorf("at: %w", Reject("r", cause))), outcomeRetry, ""},
		{Drop("d"), outcomeDrop, "d"},
	} {
		o := classify(c.err)
		if o.kind != c.kind || o.reason != c.reason {
			t.Errorf("classify(%v) = %d %q", c.err, o.kind, o.reason)
		}
		if c.kind != outcomeDrop && !errors.Is(c.err, cause) {
			t.Errorf("%v lost its cause", c.err)
		}
	}
	if d := backoff(1000); d != 2*time.Second {
		t.Errorf("backoff grows to %s", d)
	}
}
