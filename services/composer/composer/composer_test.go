package composer

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var recheck = timestamppb.New(time.Date(2026, 3, 12, 19, 44, 0, 0, time.FixedZone("IST", 19800)))

func claim(k amendsv1.ClaimKind) *amendsv1.Claim { return &amendsv1.Claim{Kind: k} }

func rupees(k amendsv1.ClaimKind, minor int64, count uint32) *amendsv1.Claim {
	return &amendsv1.Claim{Kind: k, Amount: money.New(minor, "INR"), Count: count}
}

func refund(id string, minor int64, s amendsv1.RefundStatus) *amendsv1.Claim {
	return &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS, Amount: money.New(minor, "INR"), RefundId: id, RefundStatus: s}
}

func text(t *testing.T, kind amendsv1.ReplyKind, order string, facts ...*amendsv1.Claim) string {
	t.Helper()
	got, err := write(&amendsv1.ComposeSlice{Kind: kind, OrderId: order, Facts: facts, FactsSha256: evidence.ClaimsSHA256(kind, facts)})
	if err != nil {
		t.Fatal(err)
	}
	d, ok := got.(*amendsv1.Draft)
	if !ok || envelope.Validate(d) != nil || len(d.GetClaims()) != len(facts) || d.GetKind() != kind {
		t.Fatalf("draft %v: %v", got, envelope.Validate(d))
	}
	return d.GetText()
}

func TestReplies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  amendsv1.ReplyKind
		order string
		facts []*amendsv1.Claim
		want  string
	}{
		"M01 refunded, pending": {
			amendsv1.ReplyKind_REPLY_KIND_REFUNDED, "8472",
			[]*amendsv1.Claim{rupees(amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND, 200000, 1), refund("rf_5521", 200000, amendsv1.RefundStatus_REFUND_STATUS_PENDING)},
			"About order 8472: I found a duplicate payment: ₹2,000.00 was taken once more than owed. A refund of ₹2,000.00 (reference rf_5521) has been requested and is pending at the bank.",
		},
		"M23 two refunds": {
			amendsv1.ReplyKind_REPLY_KIND_REFUNDED, "8472",
			[]*amendsv1.Claim{
				rupees(amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND, 200000, 1), rupees(amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND, 200000, 1),
				refund("rf_1", 200000, amendsv1.RefundStatus_REFUND_STATUS_PENDING), refund("rf_2", 200000, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED),
			},
			"About order 8472: I found duplicate payments: ₹2,000.00 was taken 2 times more than owed. A refund of ₹2,000.00 (reference rf_1) has been requested and is pending at the bank. A refund of ₹2,000.00 (reference rf_2) was completed.",
		},
		"M02 holding": {
			amendsv1.ReplyKind_REPLY_KIND_HOLDING, "8472",
			[]*amendsv1.Claim{rupees(amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN, 200000, 0), {Kind: amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT, Time: recheck}},
			"About order 8472: The second amount, ₹2,000.00, is a hold (an authorisation) and was not taken. I will look at this again on 12 March 2026, 14:14 UTC.",
		},
		"M09 not found": {
			amendsv1.ReplyKind_REPLY_KIND_CLARIFY, "",
			[]*amendsv1.Claim{claim(amendsv1.ClaimKind_CLAIM_KIND_ORDER_NOT_FOUND), claim(amendsv1.ClaimKind_CLAIM_KIND_ASK_ORDER_NUMBER), {Kind: amendsv1.ClaimKind_CLAIM_KIND_REPLY_BY, Time: recheck}},
			"I cannot find that order under your account. Please confirm the order number. Please reply by 12 March 2026, 14:14 UTC.",
		},
		"M25 split tender": {
			amendsv1.ReplyKind_REPLY_KIND_EXPLAIN, "8472",
			[]*amendsv1.Claim{
				{Kind: amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART, Amount: money.New(100000, "INR"), Method: "gift card"},
				{Kind: amendsv1.ClaimKind_CLAIM_KIND_SPLIT_PART, Amount: money.New(200000, "INR"), Method: "card"},
				rupees(amendsv1.ClaimKind_CLAIM_KIND_ORDER_TOTAL, 300000, 0),
			},
			"About order 8472: ₹1,000.00 was paid by gift card. ₹2,000.00 was paid by card. Together these make up the order total of ₹3,000.00. If this does not match what you see, please reply to this message.",
		},
		"M20 cancelled": {
			amendsv1.ReplyKind_REPLY_KIND_CANCELLED, "8472",
			[]*amendsv1.Claim{claim(amendsv1.ClaimKind_CLAIM_KIND_CANCELLED_NOTHING_REFUNDED)},
			"About order 8472: Your request has been cancelled, nothing was refunded.",
		},
		"M26 outside the window": {
			amendsv1.ReplyKind_REPLY_KIND_EXPLAIN, "8472",
			[]*amendsv1.Claim{{Kind: amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW, Days: 30}, claim(amendsv1.ClaimKind_CLAIM_KIND_PERSON_CAN_REVIEW)},
			"About order 8472: The payment is outside the 30 days that the automatic rule covers. A person can review it if you ask for that. If this does not match what you see, please reply to this message.",
		},
		"M27 yen": {
			amendsv1.ReplyKind_REPLY_KIND_REFUNDED, "8472",
			[]*amendsv1.Claim{{Kind: amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS, Amount: money.New(50000, "JPY"), RefundId: "rf_9", RefundStatus: amendsv1.RefundStatus_REFUND_STATUS_PENDING}},
			"About order 8472: A refund of ¥50,000 (reference rf_9) has been requested and is pending at the bank.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := text(t, c.kind, c.order, c.facts...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Bugs B14 and B15: only a succeeded refund reads as completed.
func TestRefundWordingFollowsTheStatusB14B15(t *testing.T) {
	t.Parallel()
	for n := range amendsv1.RefundStatus_name {
		s := amendsv1.RefundStatus(n)
		got := text(t, amendsv1.ReplyKind_REPLY_KIND_EXPLAIN, "8472", refund("rf_1", 100, s))
		if strings.Contains(got, "completed") != (s == amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED) {
			t.Errorf("%s: %s", s, got)
		}
	}
}

func TestEveryKindOfClaimHasASentence(t *testing.T) {
	t.Parallel()
	full := &amendsv1.Claim{
		Amount: money.New(100, "INR"), Count: 1, RefundId: "rf_1", RefundStatus: amendsv1.RefundStatus_REFUND_STATUS_PENDING,
		Time: recheck, Method: "card", Days: 30,
	}
	for n := range amendsv1.ClaimKind_name {
		if n == 0 {
			continue
		}
		c := proto.CloneOf(full)
		c.Kind = amendsv1.ClaimKind(n)
		got := text(t, amendsv1.ReplyKind_REPLY_KIND_HANDOFF, "8472", c)
		for _, bad := range []string{"pay_", "promise", "sorry", "fault", "guarantee"} {
			if strings.Contains(got, bad) {
				t.Errorf("%s: %q says %q", c.GetKind(), got, bad)
			}
		}
	}
}

func TestIncompleteOrUnknownClaimsAreNotWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []*amendsv1.Claim{
		claim(amendsv1.ClaimKind_CLAIM_KIND_UNSPECIFIED), claim(99),
		claim(amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS), claim(amendsv1.ClaimKind_CLAIM_KIND_PAYMENTS_FOUND),
		claim(amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT), claim(amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW),
		refund("", 100, amendsv1.RefundStatus_REFUND_STATUS_PENDING),
	} {
		if got, err := write(&amendsv1.ComposeSlice{Kind: amendsv1.ReplyKind_REPLY_KIND_EXPLAIN, Facts: []*amendsv1.Claim{c}}); err == nil {
			t.Errorf("%v was written as %v", c, got)
		}
	}
}

// A holding reply says nothing of a refund made or approved.
func TestHoldingReplyHasNoRefundWording(t *testing.T) {
	t.Parallel()
	got := text(t, amendsv1.ReplyKind_REPLY_KIND_HOLDING, "8472",
		rupees(amendsv1.ClaimKind_CLAIM_KIND_HOLD_NOT_TAKEN, 200000, 0), claim(amendsv1.ClaimKind_CLAIM_KIND_EVIDENCE_PENDING),
		claim(amendsv1.ClaimKind_CLAIM_KIND_NO_REFUND_ON_RECORD), &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_RECHECK_AT, Time: recheck})
	for _, bad := range []string{"refunded", "approved", "issued"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q says %q", got, bad)
		}
	}
}
