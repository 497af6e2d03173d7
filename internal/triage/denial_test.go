package triage_test

import (
	"testing"

	"github.com/amends-dev/amends/internal/triage"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A text that says that nothing was paid twice never leads to a refund without
// a person, however near or far the denial stands.
func TestDeniedDuplicates(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"order 8472 was not charged twice",
		"Order 8472 wasn't billed twice.",
		"you never double charged me for order 8472",
		"there is no duplicate on order 8472",
		"there isn't any second payment for order 8472",
		"no duplicate payment for order 8472",
		"order 8472 has not been debited two times",
		"I don't think order 8472 was charged twice",
		"I do not think any more that my order 8472 of last week was charged to my card twice",
		"I no longer believe that order 8472 was charged twice",
		"it is not true that order 8472 was charged twice",
		"It turns out you didn't charge me twice for order 8472",
		"order 8472 was not, as far as I can see now, charged twice",
		"nobody charged me twice for order 8472",
		"I doubt order 8472 was charged twice",
		"neither card was charged twice for order 8472",
		"The second payment for order 8472 was not taken",
		"the duplicate charge on order 8472 does not exist",
		"order 8472 ka paisa do baar nahi kata",
		"I said order 8472 was charged twice but it was only once",
		"order 8472 charged twice? it was charged only once",
		"order 8472, double charge: sorry, my mistake",
		"order 8472 charged twice, all good now",
		"order 8472 was charged twice, but this has been resolved",
		"Order 8472 was charged twice. Correction: it was not charged twice.",
		"it is not true that it was not true that order 8472 was not charged twice",
		"order 8472 twice? No. All fine.",
		"was order 8472 charged twice? no, it was not",
		"order 8472 charged twice? not really",
		"I was wrong, order 8472 was only charged once",
		"order 8472 double charge never happened, sorry",
		"8472 was never charged more than once",
		"I cannot find a duplicate charge on order 8472",
	} {
		if got := ask(triage.Read(text), "8472"); got.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED {
			t.Errorf("%q is %s, %v, confidence %d", text, outcome(got), got.GetIntents(), got.GetConfidence())
		}
	}
	for _, text := range []string{
		"Thanks, I checked again: order 8472 was not charged twice. Ignore my earlier call.",
		"order 8472 was not charged twice, no need for a refund",
		"all good now, no need for a refund for order 8472",
	} {
		if got := ask(triage.Read(text), "8472"); got.GetOutcome() != amendsv1.TriageOutcome_TRIAGE_OUTCOME_CANCEL {
			t.Errorf("%q is %s", text, outcome(got))
		}
	}
}

// A denial of something else, or of a denial, leaves the duplicate standing.
func TestDenialsOfSomethingElse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"order 8472 was charged not only twice but three times",
		"order 8472 was charged not once but twice",
		"it is not true that order 8472 was not charged twice",
		"there is no doubt that order 8472 was charged twice",
		"I do not deny that I ordered it, but order 8472 was charged twice",
		"No, order 8472 was charged twice",
		"no I was charged twice for order 8472",
		"Order no. 8472 charged twice",
		"order no 8472 was charged twice",
		"I can't believe order 8472 was charged twice",
		"I do not understand why order 8472 was charged twice",
		"I'm not happy that order 8472 was charged twice",
		"I did not order twice and order 8472 was charged twice",
		"I never made the second payment for order 8472",
		"I did not expect to be charged twice for order 8472",
		"Do not charge me twice for order 8472!",
		"I will not pay twice for order 8472",
		"I ordered only once but order 8472 was charged twice",
		"order 8472 should be charged only once, I was charged twice",
		"I paid once only, you took it twice, order 8472",
		"the duplicate charge of order 8472 was not reversed",
		"the double charge for order 8472 has not been resolved",
		"order 8472 was charged twice and the second payment was not refunded",
		"Order 8472 was charged twice. This is not acceptable.",
		"I should not have been charged twice for order 8472",
		"My order 8472 has not shipped and I was charged twice",
		"Nobody told me why order 8472 was charged twice",
		"I can't get anyone to fix the double charge on order 8472",
		"Can you believe order 8472 was charged twice? No refund so far.",
		"I paid order 8472 twice by my mistake",
		"please get order 8472 sorted, it was charged twice, I want it resolved",
	} {
		if got := ask(triage.Read(text), "8472"); got.GetOutcome() != amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED {
			t.Errorf("%q is %s %q, %v", text, outcome(got), got.GetReason(), got.GetIntents())
		}
	}
}

// What was asked before does not outlive its denial.
func TestADenialIsNotContinued(t *testing.T) {
	t.Parallel()
	earlier := ask(triage.Read("I was charged twice"))
	for _, text := range []string{"order 8472 was not charged twice", "order 8472: it was no duplicate", "it was only once, order 8472"} {
		if got := ask(triage.Read(text).Continue(earlier), "8472"); got.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED {
			t.Errorf("%q is %s, %v", text, outcome(got), got.GetIntents())
		}
	}
}
