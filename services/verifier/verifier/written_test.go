package verifier

import (
	"testing"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A custodian's own words may leave facts out and may not add any (TRUTH-1).
func TestWrittenReplies(t *testing.T) {
	t.Parallel()
	w := explain(claim(amendsv1.ClaimKind_CLAIM_KIND_REVIEW_DECLINED), rupees(amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND, 200000, 1))
	w.kind = amendsv1.ReplyKind_REPLY_KIND_WRITTEN
	for text, ok := range map[string]bool{
		"A person reviewed your request and decided against it.":                   true,
		"Thank you for your patience. Could you send us a photograph of the lamp?": true,
		"I found one payment of ₹2,000.00 for this order.":                         true,
		"I found two payments of ₹2,000.00 each for this order.":                   false,
		"Your refund of ₹450.00 has been approved.":                                false,
		"We will pay you back tomorrow.":                                           false,
		"The money went to pay_8472_a.":                                            false,
	} {
		if reasons := run(t, w, text); (len(reasons) == 0) != ok {
			t.Errorf("%q: reasons %v", text, reasons)
		}
	}
}
