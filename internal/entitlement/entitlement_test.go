package entitlement_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/entitlement"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var (
	received = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)
	captured = time.Date(2026, 3, 10, 9, 0, 2, 0, time.UTC)
	settled  = time.Date(2026, 3, 11, 2, 0, 0, 0, time.UTC)
)

// order makes evidence of an order with settled captures a, b, c… of these
// amounts, five seconds apart.
func order(total int64, amounts ...int64) *amendsv1.PaymentEvidence {
	e := &amendsv1.PaymentEvidence{
		Order: &amendsv1.Order{OrderId: "8472", Total: money.New(total, "INR")}, Complete: true,
		Calls: []*amendsv1.ToolCall{{CallId: "call-8472-p1", Tool: "payments.list_captures"}, {CallId: "call-8472-p2", Tool: "payments.list_refunds"}, {CallId: "call-8472-p3", Tool: "payments.get_settlement"}},
	}
	for i, a := range amounts {
		e.Captures = append(e.Captures, &amendsv1.Capture{
			PaymentId: "pay_" + string(rune('a'+i)), Amount: money.New(a, "INR"), Status: amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED,
			Captured: true, Settled: true, CapturedAt: timestamppb.New(captured.Add(time.Duration(5*i) * time.Second)), SettledAt: timestamppb.New(settled), Method: "card_visa_4417",
		})
	}
	return e
}

func refund(e *amendsv1.PaymentEvidence, id, payment string, minor int64, st amendsv1.RefundStatus) {
	e.Refunds = append(e.Refunds, &amendsv1.Refund{RefundId: id, PaymentId: payment, Amount: money.New(minor, "INR"), Status: st, CreatedAt: timestamppb.New(received.Add(-24 * time.Hour))})
}

func ask(e *amendsv1.PaymentEvidence) entitlement.Question {
	return entitlement.Question{
		OrderID: "8472", Payment: e, PinnedCorpus: "c1", ReceivedAt: received,
		Policy: &amendsv1.PolicyReading{
			Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED, CorpusVersion: "c1",
			Passage: &amendsv1.PolicyPassage{DocumentId: "POL-REF-004", Version: 4, Citation: "POL-REF-004 v4 section 2"},
			Rule: &amendsv1.RefundRule{
				Name: "duplicate_capture", WindowHours: 720, ApprovalThresholds: []*amendsv1.Money{money.New(100000, "INR")}, SecondThresholds: []*amendsv1.Money{money.New(5000000, "INR")},
			},
		},
	}
}

// The rule decisions, by the message cases that pose them (MONEY-4).
func TestAssess(t *testing.T) {
	t.Parallel()
	type want struct {
		kind      entitlement.Kind
		reason    string
		refunds   string // payments, joined
		approvers int
	}
	authorised := func(e *amendsv1.PaymentEvidence, i int) {
		c := e.GetCaptures()[i]
		c.Status, c.Captured, c.Settled, c.CapturedAt, c.SettledAt = amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, false, false, nil, nil
	}
	const pending, succeeded, failed = amendsv1.RefundStatus_REFUND_STATUS_PENDING, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED, amendsv1.RefundStatus_REFUND_STATUS_FAILED
	for name, c := range map[string]struct {
		question func() entitlement.Question
		want     want
	}{
		"M01 duplicate":        {func() entitlement.Question { return ask(order(200000, 200000, 200000)) }, want{entitlement.Refund, "duplicate_settled_capture", "pay_b", 1}},
		"M02 capture and hold": {func() entitlement.Question { e := order(200000, 200000, 200000); authorised(e, 1); return ask(e) }, want{entitlement.Hold, "no_duplicate_settled_capture", "", 0}},
		"captured, not settled": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			b := e.GetCaptures()[1]
			b.Status, b.Settled, b.SettledAt = amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED, false, nil
			return ask(e)
		}, want{entitlement.Hold, "no_duplicate_settled_capture", "", 0}},
		"M03 at the threshold":    {func() entitlement.Question { return ask(order(100000, 100000, 100000)) }, want{entitlement.Refund, "duplicate_settled_capture", "pay_b", 1}},
		"M04 one paisa below":     {func() entitlement.Question { return ask(order(99999, 99999, 99999)) }, want{entitlement.Refund, "duplicate_settled_capture", "pay_b", 0}},
		"at the second threshold": {func() entitlement.Question { return ask(order(5000000, 5000000, 5000000)) }, want{entitlement.Refund, "duplicate_settled_capture", "pay_b", 2}},
		"M06 one payment":         {func() entitlement.Question { return ask(order(200000, 200000)) }, want{entitlement.NothingDue, "single_payment", "", 0}},
		"M21 refunded on the other": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			refund(e, "rf_1", "pay_a", 200000, succeeded)
			return ask(e)
		}, want{entitlement.NothingDue, "already_refunded", "", 0}},
		"M22 pending at the bank": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			refund(e, "rf_1", "pay_b", 200000, pending)
			q := ask(e)
			q.StatusOnly = true
			return q
		}, want{entitlement.NothingDue, "already_refunded", "", 0}},
		"an earlier refund failed": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			refund(e, "rf_1", "pay_b", 200000, failed)
			return ask(e)
		}, want{entitlement.Refund, "duplicate_settled_capture", "pay_b", 1}},
		"M23 three captures": {func() entitlement.Question { return ask(order(200000, 200000, 200000, 200000)) }, want{entitlement.Refund, "duplicate_settled_capture", "pay_b pay_c", 1}},
		"one of three refunded": {func() entitlement.Question {
			e := order(50000, 50000, 50000, 50000)
			refund(e, "rf_1", "pay_b", 50000, succeeded)
			return ask(e)
		}, want{entitlement.Refund, "duplicate_settled_capture", "pay_c", 1}},
		"M24 partial refund": {func() entitlement.Question {
			e := order(500000, 500000, 500000)
			refund(e, "rf_1", "pay_b", 50000, succeeded)
			return ask(e)
		}, want{entitlement.Person, "partial_refund_exists", "", 0}},
		"M25 split tender":            {func() entitlement.Question { return ask(order(300000, 100000, 200000)) }, want{entitlement.NothingDue, "split_tender", "", 0}},
		"equal split is no duplicate": {func() entitlement.Question { return ask(order(200000, 100000, 100000)) }, want{entitlement.NothingDue, "split_tender", "", 0}},
		"excess of no whole capture":  {func() entitlement.Question { return ask(order(200000, 150000, 150000)) }, want{entitlement.Person, "excess_not_whole_captures", "", 0}},
		"M26 31 days old": {func() entitlement.Question {
			q := ask(order(200000, 200000, 200000))
			q.ReceivedAt = settled.Add(31 * 24 * time.Hour)
			return q
		}, want{entitlement.NothingDue, "outside_window", "", 0}},
		"exactly 30 days": {func() entitlement.Question {
			q := ask(order(200000, 200000, 200000))
			q.ReceivedAt = settled.Add(720 * time.Hour)
			return q
		}, want{entitlement.Refund, "duplicate_settled_capture", "pay_b", 1}},
		"30 days and a moment": {func() entitlement.Question {
			q := ask(order(200000, 200000, 200000))
			q.ReceivedAt = settled.Add(720*time.Hour + 1)
			return q
		}, want{entitlement.NothingDue, "outside_window", "", 0}},
		"M28 zero amounts": {func() entitlement.Question { return ask(order(0, 0, 0)) }, want{entitlement.NothingDue, "nothing_taken", "", 0}},
		"open dispute": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			e.Disputes = []*amendsv1.Dispute{{DisputeId: "d", PaymentId: "pay_a", Status: amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN}}
			return ask(e)
		}, want{entitlement.Person, "open_dispute", "", 0}},
		"other currency": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			e.GetCaptures()[1].Amount.Currency = "USD"
			return ask(e)
		}, want{entitlement.Person, "currency_differs", "", 0}},
		"settled and not captured": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			e.GetCaptures()[1].Captured = false
			return ask(e)
		}, want{entitlement.Hold, "ledger_contradiction", "", 0}},
		"unknown status": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			e.GetCaptures()[1].Status = amendsv1.CaptureStatus_CAPTURE_STATUS_UNKNOWN
			return ask(e)
		}, want{entitlement.Hold, "ledger_contradiction", "", 0}},
		"refund of an unlisted payment": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			refund(e, "rf_1", "pay_z", 1, pending)
			return ask(e)
		}, want{entitlement.Hold, "ledger_contradiction", "", 0}},
		"refunded beyond the capture": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			refund(e, "rf_1", "pay_b", 200001, pending)
			return ask(e)
		}, want{entitlement.Hold, "ledger_contradiction", "", 0}},
		"listed twice": {func() entitlement.Question {
			e := order(200000, 200000, 200000)
			e.GetCaptures()[1].PaymentId = "pay_a"
			return ask(e)
		}, want{entitlement.Hold, "ledger_contradiction", "", 0}},
		"incomplete":               {func() entitlement.Question { e := order(200000, 200000, 200000); e.Complete = false; return ask(e) }, want{entitlement.Hold, "evidence_incomplete", "", 0}},
		"another order's evidence": {func() entitlement.Question { q := ask(order(200000, 200000, 200000)); q.OrderID = "1"; return q }, want{entitlement.Person, "order_mismatch", "", 0}},
		"no policy found": {func() entitlement.Question {
			q := ask(order(200000, 200000, 200000))
			q.Policy.Outcome = amendsv1.LookupOutcome_LOOKUP_OUTCOME_INCOMPLETE
			return q
		}, want{entitlement.Hold, "policy_not_found", "", 0}},
		"superseded policy": {func() entitlement.Question {
			q := ask(order(200000, 200000, 200000))
			q.Policy.Passage.Superseded = true
			return q
		}, want{entitlement.Hold, "policy_superseded", "", 0}},
		"policy of another corpus": {func() entitlement.Question {
			q := ask(order(200000, 200000, 200000))
			q.Policy.CorpusVersion = "c0"
			return q
		}, want{entitlement.Hold, "policy_superseded", "", 0}},
		"conflicting policies": {func() entitlement.Question {
			q := ask(order(200000, 200000, 200000))
			q.Policy.Conflicts = []*amendsv1.PolicyPassage{{Citation: "POL-X"}}
			return q
		}, want{entitlement.Person, "policy_conflict", "", 0}},
		"status only, nothing refunded": {func() entitlement.Question { q := ask(order(200000, 200000, 200000)); q.StatusOnly = true; return q }, want{entitlement.NothingDue, "no_refund_on_record", "", 0}},
	} {
		q := c.question()
		before := proto.Clone(q.Payment)
		f := entitlement.Assess(q)
		got := want{f.Kind, f.Reason, "", f.Approvers}
		for i, r := range f.Refunds {
			if i > 0 {
				got.refunds += " "
			}
			got.refunds += r.PaymentID
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if f.Kind != entitlement.Person && len(f.Facts) == 0 {
			t.Errorf("%s: nothing to tell the customer", name)
		}
		if !proto.Equal(before, q.Payment) {
			t.Errorf("%s: assessing changed the evidence", name)
		}
	}
}

// M27: a currency without a threshold always needs a person.
func TestCurrencyWithoutThresholdM27(t *testing.T) {
	t.Parallel()
	e := order(50000, 50000, 50000)
	e.GetOrder().GetTotal().Currency = "JPY"
	for _, c := range e.GetCaptures() {
		c.Amount.Currency = "JPY"
	}
	if f := entitlement.Assess(ask(e)); f.Kind != entitlement.Refund || f.Approvers != 1 || f.Refunds[0].Amount.GetMinor() != 50000 {
		t.Errorf("%+v", f)
	}
}

// Slices do not slip under the threshold: the order's refunds of 30 days count.
func TestSlicesCountTogether(t *testing.T) {
	t.Parallel()
	e := order(60000, 60000, 60000, 60000)
	refund(e, "rf_1", "pay_b", 60000, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED)
	if f := entitlement.Assess(ask(e)); f.Kind != entitlement.Refund || f.Approvers != 1 {
		t.Errorf("60,000 after 60,000 needs %d approvers", f.Approvers)
	}
	e.Refunds[0].CreatedAt = timestamppb.New(received.Add(-31 * 24 * time.Hour))
	if f := entitlement.Assess(ask(e)); f.Approvers != 0 {
		t.Errorf("an old refund still counts: %d approvers", f.Approvers)
	}
}

func TestUnsupportedClaimIsAConflictTheLedgerWins(t *testing.T) {
	t.Parallel()
	q := ask(order(200000, 200000, 200000))
	q.ClaimsRefund = true
	f := entitlement.Assess(q)
	if len(f.Conflicts) != 1 || f.Conflicts[0].GetKind() != "unsupported_customer_claim" || f.Conflicts[0].GetResolvedBy() != "system_of_record" {
		t.Errorf("conflicts %v", f.Conflicts)
	}
	refund(q.Payment, "rf_1", "pay_b", 200000, amendsv1.RefundStatus_REFUND_STATUS_PENDING)
	if f := entitlement.Assess(q); len(f.Conflicts) != 0 {
		t.Errorf("a refund exists and the claim is still called unsupported: %v", f.Conflicts)
	}
}

// For any order: what is found due leaves the order paid exactly once, is on
// settled captures without an earlier refund, never on the earliest, and each
// capture at most once (MONEY-1, MONEY-4).
func TestRefundsLeaveTheOrderPaidOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 100, 100, 250, 5000}), 1, 6).Draw(t, "amounts")
		e := order(rapid.SampledFrom([]int64{0, 1, 100, 200, 350, 5000, 5100}).Draw(t, "total"), amounts...)
		for _, c := range e.GetCaptures() {
			if n := rapid.IntRange(0, 5).Draw(t, "refund"); n == 0 && c.GetAmount().GetMinor() > 0 {
				refund(e, "rf_"+c.GetPaymentId(), c.GetPaymentId(), rapid.Int64Range(1, c.GetAmount().GetMinor()).Draw(t, "part"), amendsv1.RefundStatus(rapid.Int32Range(1, 5).Draw(t, "status")))
			}
		}
		f := entitlement.Assess(ask(e))
		if f.Kind != entitlement.Refund {
			if len(f.Refunds) > 0 {
				t.Fatalf("refunds with a finding of kind %d", f.Kind)
			}
			return
		}
		var paid, due int64
		refunded := map[string]int64{}
		for _, r := range e.GetRefunds() {
			if r.GetStatus() != amendsv1.RefundStatus_REFUND_STATUS_FAILED && r.GetStatus() != amendsv1.RefundStatus_REFUND_STATUS_CANCELED {
				refunded[r.GetPaymentId()] += r.GetAmount().GetMinor()
			}
		}
		for _, c := range e.GetCaptures() {
			paid += c.GetAmount().GetMinor() - refunded[c.GetPaymentId()]
		}
		for _, r := range f.Refunds {
			if r.PaymentID == "pay_a" || refunded[r.PaymentID] > 0 {
				t.Fatalf("MONEY-1: refund of %s", r.PaymentID)
			}
			refunded[r.PaymentID] += r.Amount.GetMinor()
			due += r.Amount.GetMinor()
		}
		if paid-due != e.GetOrder().GetTotal().GetMinor() {
			t.Fatalf("MONEY-4: %d paid, %d due back, total %d", paid, due, e.GetOrder().GetTotal().GetMinor())
		}
	})
}
