package display_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/display"
)

// Bug B72: bidirectional and zero-width characters pass a filter for control
// characters.
func TestTextShowsWhatCannotBeSeenB72(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Order 8472 charged twice": "Order 8472 charged twice",
		"\u20b92,000 ऑर्डर":        "\u20b92,000 ऑर्डर",
		"order \u202e2748\u202c":   `order \u202e2748\u202c`,
		"84\u200b72":               `84\u200b72`,
		"a\x00\x1b[2Jb\r":          `a\x00\x1b[2Jb\r`,
		"one\ntwo\tthree":          "one\ntwo\tthree",
		"bad \xff byte":            `bad \ufffd byte`,
		"nbsp\u00a0here":           `nbsp\u00a0here`,
	} {
		if got := display.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if got := display.Line("one\ntwo"); got != `one\ntwo` {
		t.Errorf("Line kept a line end: %q", got)
	}
}
