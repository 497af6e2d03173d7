package casefile

import (
	"strings"
	"testing"
)

// Texts as the desk writes them.
const (
	saysRefund    = "About order 8472: I found a duplicate payment: ₹2,000.00 was taken once more than owed. A refund of ₹2,000.00 (reference rf_5521) has been requested and is pending at the bank."
	saysHold      = "About order 8472: The second amount, ₹2,000.00, is a hold (an authorisation) and was not taken. I will look at this again on 12 March 2026, 14:14 UTC."
	saysSplit     = "About order 8472: ₹1,000.00 was paid by gift card. ₹2,000.00 was paid by card. Together these make up the order total of ₹3,000.00."
	saysOne       = "About order 8472: I found one payment of ₹2,000.00 for this order. If this does not match what you see, please reply to this message."
	saysUnknown   = "I cannot find that order under your account. Please confirm the order number. Please reply by 15 March 2026, 10:14 UTC."
	saysCancelled = "About order 8472: Your request has been cancelled, nothing was refunded."
	saysWindow    = "About order 8472: The payment is outside the 30 days that the automatic rule covers. A person can review it if you ask for that."
	saysPartial   = "About order 8472: A refund of ₹500.00 (reference rf_4412) was completed. Your request has been passed to a specialist, who will continue with it."
	saysNothing   = "About order 8472: No money was taken for this order."
	saysLakh      = "About order 8472: I found a duplicate payment: ₹1,00,000.00 was taken once more than owed."
	saysNone      = "About order 8472: There is no refund on record for this order."
	saysDenied    = "About order 8472: A person reviewed your request and decided against it."
)

// A fact is met by what means the same, and by nothing that means something
// else.
func TestUnsaid(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reply, fact string
		missing     string // a word of what is missed; empty: all is said
	}{
		{saysRefund, "duplicate found", ""},
		{saysRefund, "refund requested, pending", ""},
		{saysRefund, "a second payment was found", ""},
		{saysRefund, "your money is on its way back", ""},
		{saysRefund, "money back is on its way", ""},
		{saysRefund, "₹2,000", ""},
		{saysRefund, "Rs 2000", ""},
		{saysRefund, "2,000.00 taken twice", ""},
		{saysRefund, "rf_5521", ""},
		{saysRefund, "rf_5522", "rf_5522"},
		{saysRefund, "₹20,000", "20,000"},
		{saysRefund, "$2,000", "2,000"},
		{saysRefund, "refund completed", "completed"},
		{saysRefund, "the refund has arrived", "arrived"},
		{saysRefund, "no refund", "denial"},
		{saysRefund, "refund approved", "approved"},
		{saysHold, "second amount is a hold, not taken", ""},
		{saysHold, "the second charge is only an authorisation", ""},
		{saysHold, "the other amount was reserved", ""},
		{saysHold, "2,000 not captured", ""},
		{saysHold, "we will check again", ""},
		{saysHold, "duplicate found", "duplicate"},
		{saysHold, "refund requested, pending", "refund"},
		{saysSplit, "gift card 1,000 and card 2,000 make up the total", ""},
		{saysSplit, "the two parts of 1000 and 2000 add up to 3,000", "two"},
		{saysSplit, "gift card 1,500", "1,500"},
		{saysOne, "one payment found", ""},
		{saysOne, "a single charge exists", ""},
		{saysOne, "no duplicate", ""},
		{saysOne, "two payments found", "two"},
		{saysUnknown, "cannot find that order under your account", ""},
		{saysUnknown, "ask to confirm the order number", ""},
		{saysUnknown, "asks which order it is", ""},
		{saysUnknown, "order not found", ""},
		{saysUnknown, "order found", "found"},
		{saysCancelled, "cancelled, nothing was refunded", ""},
		{saysCancelled, "no refund was made", ""},
		{saysCancelled, "request withdrawn", ""},
		{saysCancelled, "refunded", "refunded"},
		{saysWindow, "outside 30 days", ""},
		{saysWindow, "older than 30 days", ""},
		{saysWindow, "a person can review", ""},
		{saysWindow, "a colleague can look at it", ""},
		{saysWindow, "outside 31 days", "31"},
		{saysPartial, "500 already refunded", ""},
		{saysPartial, "passed to a specialist", ""},
		{saysPartial, "handed over to a person", ""},
		{saysPartial, "4,500 refunded", "4,500"},
		{saysNothing, "no money was taken", ""},
		{saysNothing, "nothing was charged", ""},
		{saysNothing, "money was taken", "taken"},
		{saysLakh, "₹1,00,000", ""},
		{saysLakh, "1 lakh", ""},
		{saysLakh, "100,000", ""},
		{saysLakh, "₹1,000", "1,000"},
		{saysNone, "no refund on record", ""},
		{saysNone, "refund found", "refund"},
		{saysDenied, "a person decided against it", ""},
		{saysDenied, "declined", ""},
		{saysRefund + "\n" + saysPartial, "500 already refunded", ""},
		{"", "refund pending", "refund"},
	} {
		missing := strings.Join(unsaid(tc.fact, readText(tc.reply), nil), ", ")
		if (tc.missing == "") != (missing == "") || !strings.Contains(missing, tc.missing) {
			t.Errorf("%q in %q: missing %q, want %q", tc.fact, tc.reply, missing, tc.missing)
		}
	}
	if m := unsaid("status of both orders", readText(saysRefund), []string{"8472", "9001"}); len(m) != 1 || m[0] != "order 9001" {
		t.Errorf("both orders: %v", m)
	}
}

// A phrase that must not be said is looked for word by word; denied in its own
// clause it is not said.
func TestStates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reply, words string
		said         bool
	}{
		{saysHold, "refunded", false},
		{saysHold, "approved", false},
		{saysHold, "taken", false},
		{saysCancelled, "refunded", false},
		{saysCancelled, "cancelled", true},
		{saysCancelled, "CANCELLED", true},
		{saysCancelled, "nothing was refunded", true},
		{saysRefund, "has arrived", false},
		{saysRefund, "your earlier refund", false},
		{saysRefund, "has been requested", true},
		{saysRefund, "refund", true},
		{saysRefund, "refunded", false},
		{saysRefund, "fund", false},
		{saysRefund, "₹2,000", true},
		{saysRefund, "bank. I", false},
		{"Your refund has arrived.", "has arrived", true},
		{"Your refund has\u00a0arrived.", "has arrived", true},
		{"Your refund has not arrived.", "has arrived", false},
		{"It was not a hold, and was refunded.", "refunded", true},
		{"We don't say it's refunded.", "refunded", false},
		{"It isn't a hold but it was refunded.", "refunded", true},
	} {
		if _, said := readText(tc.reply).states(tc.words); said != tc.said {
			t.Errorf("%q in %q: %t", tc.words, tc.reply, said)
		}
	}
}

// What a reply claims is one sentence's meaning; a refund spoken of is not
// money refunded.
func TestClaims(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reply, fact string
		said        bool
	}{
		{saysHold, "refund issued", false},
		{saysHold, "approved", false},
		{saysRefund, "refunded", false},
		{saysRefund, "money received", false},
		{saysRefund, "earlier refund existed", false},
		{saysRefund, "completed", false},
		{saysPartial, "completed", true},
		{saysPartial, "nothing owed", false},
		{"You owe nothing, and nothing is owed to you.", "nothing owed", true},
		{"Your money was refunded.", "refunded", true},
		{"We will fix it today.", "today", true},
		{"The money was received.", "money received", true},
		{"I found two payments for this order.", "two captures", true},
		{saysOne, "two captures", false},
		{"An earlier refund exists.", "earlier refund existed", true},
		{"Before that, there was no refund on record for this order.", "earlier refund existed", false},
	} {
		if quote, said := readText(tc.reply).claims(tc.fact); said != tc.said {
			t.Errorf("%q in %q: %t (%s)", tc.fact, tc.reply, said, quote)
		}
	}
}

// What must not be said is caught in other words, too; what is denied, or only
// resembles it, is not said. "Refunded" is said by a refund under way, "arrived"
// by one at its end.
func TestImplies(t *testing.T) {
	t.Parallel()
	const failed = "A refund of ₹500.00 (reference rf_1) failed."
	const notThrough = "The refund of ₹500.00 (reference rf_1) did not go through."
	for _, tc := range []struct {
		reply, words string
		said         bool
	}{
		{saysRefund, "a refund has been requested", true},
		{saysRefund, "refund requested", true},
		{saysRefund, "refunded", true},
		{saysRefund, "we have refunded you", true},
		{saysRefund, "reimbursed", true},
		{saysRefund, "a refund was initiated", true},
		{saysRefund, "your money is on its way", false}, // of money nothing is said
		{saysRefund, "the refund is on its way", true},
		{saysRefund, "a second payment was found", true},
		{saysRefund, "refund of ₹500", false},
		{saysRefund, "refund of ₹2,000", true},
		{saysRefund, "has arrived", false},
		{saysRefund, "your refund has arrived", false},
		{saysRefund, "refund completed", false},
		{saysRefund, "credited", false},
		{saysRefund, "refund approved", false},
		{saysRefund, "your earlier refund", false},
		{saysRefund, "no duplicate", false},
		{saysRefund, "no refund", false},
		{saysPartial, "refunded", true},
		{saysPartial, "refund completed", true},
		{saysPartial, "refund pending", false},
		{saysHold, "refunded", false},
		{saysHold, "approved", false},
		{saysHold, "charged", false},
		{saysHold, "refund requested", false},
		{saysCancelled, "refunded", false},
		{saysCancelled, "a refund was made", false},
		{saysCancelled, "nothing was refunded", true},
		{saysNone, "refunded", false},
		{saysNone, "a refund exists", false},
		{saysDenied, "approved", false},
		{saysWindow, "refunded", false},
		{failed, "refunded", false},
		{notThrough, "refunded", false},
		{notThrough, "refund completed", false},
		{saysSplit, "card data", false},
		{saysUnknown, "order found", false},
	} {
		quote, said := readText(tc.reply).implies(tc.words)
		if _, literal := readText(tc.reply).states(tc.words); (said || literal) != tc.said {
			t.Errorf("%q in %q: %t (%s)", tc.words, tc.reply, said || literal, quote)
		}
	}
}

func FuzzReadText(f *testing.F) {
	f.Add(saysRefund, "refund requested, pending")
	f.Add(saysRefund, "a refund has been requested")
	f.Add("₹1,00,000 1.00.000 1,0,0", "1,00,000")
	f.Fuzz(func(t *testing.T, reply, fact string) {
		if len(reply) > 8192 || len(fact) > 512 {
			return // replies are no longer
		}
		said := readText(reply)
		if len(fact) < 200 && strings.TrimSpace(fact) != "" {
			// A text says whatever it consists of, unless it denies itself.
			if m := unsaid(fact, readText(fact), nil); len(m) > 0 && !strings.Contains(strings.Join(m, ""), "denial") {
				for _, w := range readText(fact) {
					if negators[w.low] {
						return
					}
				}
				t.Errorf("%q does not say itself: %v", fact, m)
			}
		}
		unsaid(fact, said, nil)
		said.states(fact)
		said.claims(fact)
		said.implies(fact)
	})
}
