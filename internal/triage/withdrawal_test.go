package triage_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/triage"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A refund that is not wanted takes a request back only where nothing is asked
// in the same message.
func TestDeclinedRefunds(t *testing.T) {
	t.Parallel()
	under := ask(triage.Read("order 8472 was charged twice"), "8472")
	for _, c := range []struct{ text, outcome, reason string }{
		{"Please do not refund anything yet. I only want to know whether order 8472 was charged twice.", "STATUS_ONLY", ""},
		{"don't refund anything for order 8472, just tell me if it was charged twice", "STATUS_ONLY", ""},
		{"No need to refund. Was order 8472 charged twice?", "STATUS_ONLY", ""},
		{"I do not want a refund for order 8472, I want to know why there are two payments", "STATUS_ONLY", ""},
		{"do not refund anything yet, but check whether I was charged twice", "CLARIFY", "no_order"},
		{"order 8472 was charged twice. please do not refund it yet", "NEEDS_PERSON", ""},
		{"order 8472 was charged twice, do not refund it until I have called you", "NEEDS_PERSON", ""},
		{"do not refund anything", "CANCEL", ""},
		{"order 8472: do not refund anything", "CANCEL", ""},
		{"wait leave it, my wife placed the second one herself. do not refund anything", "CANCEL", ""},
		{"cancel my request and tell me what happened", "CANCEL", ""},
		{"forget it, do not refund anything yet", "CANCEL", ""},
		{"please don't refund it, ok?", "CANCEL", ""},
		{"no need to refund order 8472, thank you", "CANCEL", ""},
	} {
		got := ask(triage.Read(c.text), "8472")
		if outcome(got) != c.outcome && (c.outcome != "NEEDS_PERSON" || got.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED) || c.reason != "" && got.GetReason() != c.reason {
			t.Errorf("%q is %s %q, %v, want %s", c.text, outcome(got), got.GetReason(), got.GetIntents(), c.outcome)
		}
		// A refund that is under way stops at each of them.
		if later := ask(triage.Read(c.text).Continue(under), "8472"); outcome(later) != "CANCEL" || later.GetIntents()[0] != triage.CancelRequest {
			t.Errorf("%q, later, is %s, %v", c.text, outcome(later), later.GetIntents())
		}
	}
	for _, text := range []string{"I checked again, it was not charged twice", "order 8472: no duplicate, it was only once", "all good now"} {
		if later := ask(triage.Read(text).Continue(under), "8472"); outcome(later) != "CANCEL" {
			t.Errorf("%q, later, is %s", text, outcome(later))
		}
	}
	for _, text := range []string{"any news?", "it was charged twice, I am sure", "I am not happy", "what about my refund?"} {
		if later := ask(triage.Read(text).Continue(under), "8472"); outcome(later) == "CANCEL" {
			t.Errorf("%q, later, is %s", text, outcome(later))
		}
	}
}
