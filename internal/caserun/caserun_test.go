package caserun

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casefile"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func action(refunds ...int64) *amendsv1.ActionRecord {
	a := &amendsv1.ActionRecord{
		Tenant: "acme-in", CaseId: "req-1", OrderId: "8472", CaseVersion: 5, EvidenceSha256: "00", Proposal: 1,
		Created: timestamppb.New(time.Unix(1, 0)), Expires: timestamppb.New(time.Unix(2, 0)),
	}
	for i, minor := range refunds {
		id := "pay_" + string(rune('a'+i))
		a.Refunds = append(a.Refunds, &amendsv1.ActionRefund{PaymentId: id, Amount: money.New(minor, "INR"), Kind: "duplicate_capture", IdempotencyKey: approval.Key("req-1", id)})
	}
	return a
}

// What an approver signs is what is shown, unless the words name something
// else; the amount shown, of one refund or of all, names nothing else.
func TestAlter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		words   string
		refunds []int64
		altered bool
		minor   int64
		payment string
	}{
		{"approve", []int64{200000}, false, 200000, "pay_a"},
		{"approve 2,000", []int64{200000}, false, 200000, "pay_a"},
		{"approve ₹4,000.00", []int64{200000, 200000}, false, 200000, "pay_a"},
		{"approve 20,000 instead of 2,000", []int64{200000}, true, 2000000, "pay_a"},
		{"approve another amount", []int64{200000}, true, 2000000, "pay_a"},
		{"approve another payment", []int64{200000}, true, 200000, "pay_a_x"},
	} {
		deed, err := casefile.ParseApproverAction(tc.words)
		if err != nil {
			t.Fatal(err)
		}
		shown := action(tc.refunds...)
		got, altered, err := alter(shown, deed)
		if err != nil {
			t.Errorf("%q: %v", tc.words, err)
			continue
		}
		first := got.GetRefunds()[0]
		if altered != tc.altered || first.GetAmount().GetMinor() != tc.minor || first.GetPaymentId() != tc.payment {
			t.Errorf("%q: altered %t, %v", tc.words, altered, first)
		}
		if shown.GetRefunds()[0].GetAmount().GetMinor() != tc.refunds[0] || shown.GetRefunds()[0].GetPaymentId() != "pay_a" {
			t.Errorf("%q changed the action that was shown", tc.words)
		}
	}
	if _, _, err := alter(action(200000), casefile.ApproverAction{Amounts: []string{"2.0.0"}}); err == nil {
		t.Error("2.0.0 is an amount")
	}
}

// A change of the ledger leaves out what is known: whose a payment is, and what
// of it stays the same.
func TestComplete(t *testing.T) {
	t.Parallel()
	at := time.Unix(3, 0)
	p := &player{known: sandbox.Ledger{
		Orders:   []sandbox.Order{{OrderID: "8472", Tenant: "acme-in"}},
		Captures: []sandbox.Capture{{PaymentID: "pay_b", OrderID: "8472", AmountMinor: 5, Currency: "INR", Status: "authorized", Method: "card_1", CapturedAt: &at}},
	}}
	l := p.complete(sandbox.Ledger{
		Captures: []sandbox.Capture{{PaymentID: "pay_b", Status: "settled", Settled: true}, {PaymentID: "pay_c", OrderID: "8472", AmountMinor: 7}},
		Refunds:  []sandbox.Refund{{RefundID: "rf_1", PaymentID: "pay_b"}},
		Disputes: []sandbox.Dispute{{DisputeID: "dp_1", PaymentID: "pay_b"}},
	})
	b, c := l.Captures[0], l.Captures[1]
	if b.Tenant != "acme-in" || b.OrderID != "8472" || b.AmountMinor != 5 || b.Currency != "INR" || b.Method != "card_1" || b.Status != "settled" || b.CapturedAt == nil {
		t.Errorf("a known payment: %+v", b)
	}
	if c.Tenant != "acme-in" || c.AmountMinor != 7 {
		t.Errorf("a new payment: %+v", c)
	}
	if r := l.Refunds[0]; r.Tenant != "acme-in" || r.OrderID != "8472" || r.Currency != "INR" {
		t.Errorf("a refund: %+v", r)
	}
	if d := l.Disputes[0]; d.Tenant != "acme-in" || d.OrderID != "8472" {
		t.Errorf("a dispute: %+v", d)
	}
}

// A case that cannot be played in its time says what it was waiting for.
func TestOutOfTime(t *testing.T) {
	t.Parallel()
	c := &casefile.Case{ID: "X", Channel: "web", Now: time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC), Message: "hello", Caller: &casefile.Caller{Tenant: "acme-in", CustomerID: "cust_1"}}
	if r := Run(t.Context(), c, Options{Limit: time.Nanosecond}); r.Err == nil || r.Passed() {
		t.Errorf("passed in no time: %+v", r)
	}
}
