package ledger_test

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

const (
	acknowledged = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
	refusedClass = amendsv1.EffectClass_EFFECT_CLASS_REFUSED
	noEffect     = amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT
	unknown      = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN
	notBegun     = amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN
	undecidable  = amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE

	window = 30 * time.Second
)

// failer is what a test and a property have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var now = time.Date(2026, 3, 12, 10, 14, 5, 0, time.UTC)

func inr(minor int64) *amendsv1.Money { return money.New(minor, "INR") }

// view is order 8472 of 2,000.00, paid three times.
func view() ledger.View {
	capture := func(id string) *amendsv1.Capture {
		return &amendsv1.Capture{
			PaymentId: id, Amount: inr(200000), Status: amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED, Captured: true, Settled: true,
			CapturedAt: timestamppb.New(now.Add(-48 * time.Hour)), SettledAt: timestamppb.New(now.Add(-24 * time.Hour)),
		}
	}
	return ledger.View{
		Tenant: "acme-in", Order: &amendsv1.Order{OrderId: "8472", Total: inr(200000)},
		Captures: []*amendsv1.Capture{capture("pay_a"), capture("pay_b"), capture("pay_c")},
	}
}

// action asks for refunds of order 8472 in the name of a case.
func action(caseID string, refunds ...*amendsv1.ActionRefund) *amendsv1.ActionRecord {
	for _, r := range refunds {
		r.IdempotencyKey = approval.Key(caseID, r.GetPaymentId())
	}
	return &amendsv1.ActionRecord{
		Tenant: "acme-in", CaseId: caseID, OrderId: "8472", CaseVersion: 5, Proposal: 1, Refunds: refunds,
		EvidenceSha256: strings.Repeat("ab", 32), Created: timestamppb.New(now), Expires: timestamppb.New(now.Add(30 * time.Minute)),
	}
}

func refund(payment string, minor int64) *amendsv1.ActionRefund {
	return &amendsv1.ActionRefund{PaymentId: payment, Amount: inr(minor), Kind: "duplicate_capture"}
}

func sha(t failer, a *amendsv1.ActionRecord) string {
	t.Helper()
	sum, err := approval.ActionSHA256(a)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func body(r *amendsv1.ActionRefund) ([]byte, error) {
	return []byte(`{"reference":"` + r.GetIdempotencyKey() + `"}`), nil
}

// begin writes the action's intents, or fails the test.
func begin(t failer, e *amendsv1.EffectEntry, a *amendsv1.ActionRecord, approvals ...string) *amendsv1.EffectEntry {
	t.Helper()
	n, err := tryBegin(t, e, a, approvals...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func tryBegin(t failer, e *amendsv1.EffectEntry, a *amendsv1.ActionRecord, approvals ...string) (*amendsv1.EffectEntry, error) {
	t.Helper()
	positions, err := ledger.Positions(e, a, sha(t, a))
	if err != nil {
		return nil, err
	}
	return ledger.WriteIntent(e, ledger.Begin{
		Action: a, SHA256: sha(t, a), Positions: positions, ApprovalIDs: approvals, Body: body, At: now, Window: window,
	})
}

// answered records an answer to the newest call of a key.
func answered(t failer, e *amendsv1.EffectEntry, key string, a ledger.Answer) *amendsv1.EffectEntry {
	t.Helper()
	n, err := ledger.WriteOutcome(e, key, intent(t, e, key).GetCalls(), a, now)
	if err != nil {
		t.Fatal(err)
	}
	if n == nil {
		return e
	}
	return n
}

func intent(t failer, e *amendsv1.EffectEntry, key string) *amendsv1.EffectIntent {
	t.Helper()
	for _, in := range e.GetIntents() {
		if in.GetIdempotencyKey() == key {
			return in
		}
	}
	t.Fatalf("no intent %s", key)
	return nil
}

func ask(t failer, e *amendsv1.EffectEntry, v ledger.View, a *amendsv1.ActionRecord, approved bool) (ledger.Admission, error) {
	t.Helper()
	positions, err := ledger.Positions(e, a, sha(t, a))
	if err != nil {
		return ledger.Admission{}, err
	}
	adm, err := ledger.Admit(ledger.Question{Entry: e, View: v, Action: a, Positions: positions, Approved: approved, At: now})
	return adm, ledger.InDoubt(err, positions)
}

// reasonOf gives class and reason of a refusal; ok is for none.
func reasonOf(t failer, err error) string {
	t.Helper()
	if err == nil {
		return "ok"
	}
	r, ok := errors.AsType[*ledger.Refusal](err)
	if !ok {
		t.Fatalf("not a refusal: %v", err)
	}
	if r.Class == undecidable {
		return "undecidable " + r.Reason
	}
	return r.Reason
}
