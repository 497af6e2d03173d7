package verifier

import (
	"os"
	"slices"
	"strings"
	"testing"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// declinedWorld is a case that a person decided against: one payment, no refund.
func declinedWorld() world {
	w := explain(claim(amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED), rupees(amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND, 200000, 1))
	w.kind = amendsv1.ReplyKind_REPLY_KIND_WRITTEN
	return w
}

// richWorld is a case whose record holds as much as a person can speak of.
func richWorld() world {
	return world{
		kind: amendsv1.ReplyKind_REPLY_KIND_WRITTEN, order: "8472", total: 500000,
		facts: []*amendsv1.Claim{
			rupees(amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND, 500000, 2),
			refundClaim("rf_4412", 50000, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED),
			claim(amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED),
			rupees(amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL, 500000, 0),
			{Kind: amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY, Time: replyBy},
			{Kind: amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART, Amount: inr(500000), Method: "card"},
		},
		captures: []*amendsv1.Capture{settled("pay_8472_a", 500000), settled("pay_8472_b", 500000)},
		refunds:  []*amendsv1.Refund{refundOf("rf_4412", "pay_8472_b", 50000, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED)},
	}
}

func TestFalseWordsOfPeopleAreRejected(t *testing.T) {
	t.Parallel()
	if len(falseClaims) < 60 {
		t.Fatalf("only %d", len(falseClaims))
	}
	for name, w := range map[string]world{"declined": declinedWorld(), "rich": richWorld()} {
		for _, text := range falseClaims {
			for _, written := range []string{text, "Thank you for your patience. " + text} {
				if reasons := run(t, w, written); len(reasons) == 0 {
					t.Errorf("%s: verified %q", name, written)
				}
			}
		}
	}
}

func TestHarmlessWordsOfPeopleAreVerified(t *testing.T) {
	t.Parallel()
	if len(harmless) < 40 {
		t.Fatalf("only %d", len(harmless))
	}
	for _, text := range harmless {
		if bad := failing(richWorld(), text); len(bad) > 0 {
			t.Errorf("%q: %v", text, bad)
		}
	}
}

// failing gives the checks that a text fails.
func failing(w world, text string) []*amendsv1.ClaimCheck {
	slice, seen := w.build(text)
	checks, _ := check(slice, read(text, knownRefunds(slice.GetRecords())), seen)
	return slices.DeleteFunc(checks, (*amendsv1.ClaimCheck).GetSupported)
}

// A rejection names the sentence, and the reason says what is wrong with it.
func TestRejectionsNameTheSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"Your claim succeeded.":           {reasonStatement, "Your claim succeeded"},
		"Su dinero ya fue devuelto.":      {reasonLanguage, "the word Su in: Su dinero ya fue devuelto"},
		"Did you see that it is sorted?":  {reasonStatement, "the word sorted in: Did you see that it is sorted"},
		"I have passed it to a person.":   {reasonClaim, "I have passed it to a person"},
		"Do you recognise 3 payments?":    {reasonCount, "3 payments"},
		"Your refund has been approved.":  {reasonApproval, "approved"},
		"Please confirm that we paid you": {reasonStatement, "Please confirm that we paid you"},
	} {
		bad := failing(richWorld(), "Thank you. "+text)
		if !slices.ContainsFunc(bad, func(c *amendsv1.ClaimCheck) bool {
			return c.GetReason() == want[0] && strings.Contains(c.GetFound(), want[1])
		}) {
			t.Errorf("%q: %v", text, bad)
		}
	}
}

// A custodian's own words may leave facts out and may not add any (TRUTH-1).
func TestWrittenReplies(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"A person reviewed your request and decided against it.":                    true,
		"Thank you for your patience. Could you send us a photograph of the lamp?":  true,
		"I found one payment of ₹2,000.00 for this order.":                          true,
		"I found two payments of ₹2,000.00 each for this order.":                    false,
		"Your refund of ₹450.00 has been approved.":                                 false,
		"We will pay you back tomorrow.":                                            false,
		"The money went to pay_8472_a.":                                             false,
		"Which of the two payments do you not recognise?":                           false, // there is one
		"Could you confirm that the refund of ₹500.00 (reference rf_4412) arrived?": false,
	} {
		if reasons := run(t, declinedWorld(), text); (len(reasons) == 0) != ok {
			t.Errorf("%q: reasons %v", text, reasons)
		}
	}
}

// Every example and every courtesy that docs/custody.md promises holds, and no
// courtesy is missing there.
func TestGuideForCustodiansHolds(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/custody.md")
	if err != nil {
		t.Fatal(err)
	}
	_, guide, _ := strings.Cut(string(page), "## What you may write")
	told, examples := map[string]bool{}, 0
	for _, block := range strings.Split(guide, "```")[1:] {
		kind, text, _ := strings.Cut(block, "\n")
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			bad := failing(richWorld(), line)
			switch {
			case line == "":
			case kind == "accepted" || kind == "courtesies":
				examples++
				told[plainly(strings.TrimRight(line, "."))] = true
				if len(bad) > 0 {
					t.Errorf("%q: %v", line, bad)
				}
			case kind == "refused":
				examples++
				if len(bad) == 0 {
					t.Errorf("verified %q", line)
				}
			}
		}
	}
	for text := range neutral {
		if !told[text] {
			t.Errorf("docs/custody.md does not list %q", text)
		}
	}
	if examples < len(neutral)+10 {
		t.Errorf("only %d examples", examples)
	}
}
