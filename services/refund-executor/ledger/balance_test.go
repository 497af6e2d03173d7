package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

const (
	failed   = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	canceled = amendsv1.RefundStatus_REFUND_STATUS_CANCELED

	keyB = "refund:req-1:pay_b"
)

// books are those of order 8472, half of whose second payment was refunded as
// rf_1, two hours ago.
func books(t failer) ledger.Books {
	t.Helper()
	e := begin(t, nil, action("req-1", refund("pay_b", 100000)), "apr-1")
	e = answered(t, e, keyB, ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: pending})
	b := ledger.Books{Tenant: "acme-in", OrderID: "8472", Entry: e, View: view(), At: now.Add(2 * time.Hour), Grace: 5 * time.Minute, InDoubt: time.Hour}
	b.View.Refunds = []*amendsv1.Refund{providerRefund("rf_1", "pay_b", 100000, pending, keyB)}
	return b
}

func codes(b ledger.Balance) []string {
	var out []string
	for _, f := range b.Findings {
		out = append(out, f.GetCode())
	}
	slices.Sort(out)
	return out
}

func sighting(kind, refund string, at time.Time) *amendsv1.Sighting {
	return &amendsv1.Sighting{Kind: kind, RefundId: refund, At: timestamppb.New(at)}
}

// Each way in which the books of an order can disagree, and what is none
// (MONEY-1, MONEY-3, MONEY-4; B17, B18).
func TestBalance(t *testing.T) {
	t.Parallel()
	add := func(r ...*amendsv1.Refund) func(*ledger.Books) {
		return func(b *ledger.Books) { b.View.Refunds = append(b.View.Refunds, r...) }
	}
	for name, c := range map[string]struct {
		change func(*ledger.Books)
		// want is the code, and about the case people get it with; both empty
		// for none.
		want, about string
		moved       amendsv1.RefundStatus
	}{
		"agrees":   {change: func(*ledger.Books) {}},
		"moved on": {change: func(b *ledger.Books) { b.View.Refunds[0].Status = succeeded }, moved: succeeded},
		"dead either way": {change: func(b *ledger.Books) {
			outcome(b).ProviderStatus = failed
			sums(b)
			b.View.Refunds[0].Status = canceled
		}, moved: canceled},
		"made in the dashboard":         {change: add(providerRefund("rf_2", "pay_c", 5000, pending, "")), want: ledger.CodeWithoutIntent},
		"in the dashboard, with a note": {change: add(providerRefund("rf_2", "pay_c", 5000, succeeded, "goodwill for cust")), want: ledger.CodeWithoutIntent},
		"in the dashboard, and failed":  {change: add(providerRefund("rf_2", "pay_c", 5000, failed, ""))},
		"our key, no intent":            {change: add(providerRefund("rf_2", "pay_c", 5000, pending, "refund:req-9:pay_c")), want: ledger.CodeUnknownReference},
		"our key, no intent, failed":    {change: add(providerRefund("rf_2", "pay_c", 5000, failed, "refund:req-9:pay_c")), want: ledger.CodeUnknownReference},
		"after the withdrawal": {change: func(b *ledger.Books) {
			b.Entry.Tombstones = []*amendsv1.Tombstone{{IdempotencyKey: "refund:req-9:pay_c", CaseId: "req-9", CancelRevision: 1, At: timestamppb.New(now)}}
			add(providerRefund("rf_2", "pay_c", 5000, pending, "refund:req-9:pay_c"))(b)
		}, want: ledger.CodeAfterWithdrawal, about: "req-9"},
		"two for one intent": {change: add(providerRefund("rf_2", "pay_b", 100000, pending, keyB)), want: ledger.CodeTwoForOneIntent, about: "req-1"},
		"refund missing":     {change: func(b *ledger.Books) { b.View.Refunds = nil }, want: ledger.CodeRefundMissing, about: "req-1"},
		"refund missing yet": {change: func(b *ledger.Books) { b.View.Refunds, b.At = nil, now.Add(time.Minute) }},
		"payment differs":    {change: func(b *ledger.Books) { b.View.Refunds[0].PaymentId = "pay_c" }, want: ledger.CodePaymentDiffers, about: "req-1"},
		"amount differs":     {change: func(b *ledger.Books) { b.View.Refunds[0].Amount = inr(99999) }, want: ledger.CodeAmountDiffers, about: "req-1"},
		"reference differs":  {change: func(b *ledger.Books) { b.View.Refunds[0].Reference = "x" }, want: ledger.CodeReferenceDiffers, about: "req-1"},
		"id differs":         {change: func(b *ledger.Books) { b.View.Refunds[0].RefundId = "rf_7" }, want: ledger.CodeRefundIDDiffers, about: "req-1"},
		"failed later":       {change: func(b *ledger.Books) { b.View.Refunds[0].Status = failed }, want: ledger.CodeFailedLater, about: "req-1", moved: failed},
		"failed after it had succeeded": {change: func(b *ledger.Books) {
			outcome(b).ProviderStatus, b.View.Refunds[0].Status = succeeded, failed
		}, want: ledger.CodeFailedLater, about: "req-1", moved: failed},
		"went back":              {change: func(b *ledger.Books) { outcome(b).ProviderStatus = succeeded }, want: ledger.CodeStatusDiffers, about: "req-1"},
		"came back":              {change: func(b *ledger.Books) { outcome(b).ProviderStatus = failed; sums(b) }, want: ledger.CodeStatusDiffers, about: "req-1", moved: pending},
		"in doubt":               {change: func(b *ledger.Books) { doubtful(b); b.View.Refunds, b.At = nil, now.Add(time.Hour-time.Second) }},
		"in doubt long":          {change: func(b *ledger.Books) { doubtful(b); b.View.Refunds = nil }, want: ledger.CodeInDoubt, about: "req-1"},
		"never answered":         {change: func(b *ledger.Books) { b.Entry.Intents[0].Outcome, b.View.Refunds = nil, nil }, want: ledger.CodeInDoubt, about: "req-1"},
		"in doubt long, made":    {change: func(b *ledger.Books) { doubtful(b) }, want: ledger.CodeInDoubt, about: "req-1"},
		"nothing done, and made": {change: func(b *ledger.Books) { classed(b, noEffect) }, want: ledger.CodeOutcomeContra, about: "req-1"},
		"refused, and made":      {change: func(b *ledger.Books) { classed(b, refusedClass) }, want: ledger.CodeOutcomeContra, about: "req-1"},
		"refused, and failed":    {change: func(b *ledger.Books) { classed(b, refusedClass); b.View.Refunds[0].Status = failed }},
		"a webhook alone": {change: func(b *ledger.Books) {
			b.Entry.Sightings = []*amendsv1.Sighting{sighting("refund.created", "rf_9", now), sighting("refund.created", "rf_9", now)}
		}, want: ledger.CodeEventAlone},
		"a webhook just now": {change: func(b *ledger.Books) {
			b.Entry.Sightings = []*amendsv1.Sighting{sighting("refund.created", "rf_9", b.At)}
		}},
		"a webhook of ours": {change: func(b *ledger.Books) {
			b.Entry.Sightings = []*amendsv1.Sighting{sighting("refund.updated", "rf_1", now)}
		}},
		"a webhook contradicted": {change: func(b *ledger.Books) {
			b.Entry.Sightings = []*amendsv1.Sighting{sighting("refund.failed", "rf_1", now)}
		}, want: ledger.CodeEventContra, about: "req-1"},
		"a read": {change: func(b *ledger.Books) {
			s := sighting("read", "rf_9", now)
			s.Status = pending
			b.Entry.Sightings = []*amendsv1.Sighting{s}
		}},
		"payment over-refunded": {change: func(b *ledger.Books) { b.View.Captures[1].Amount = inr(99999) }, want: ledger.CodeCaptureOver, about: "req-1"},
		"order over-refunded":   {change: func(b *ledger.Books) { b.View.Order.Total = inr(500001) }, want: ledger.CodeOrderOver, about: "req-1"},
		"charged back besides":  {change: func(b *ledger.Books) { lost(b, "pay_a"); b.View.Order.Total = inr(400000) }, want: ledger.CodeOrderOver, about: "req-1"},
		"goodwill approved": {change: func(b *ledger.Books) {
			b.View.Order.Total = inr(600000)
			b.Entry.Intents[0].Body = []byte(`{"reason":"goodwill"}`)
		}},
		"goodwill unapproved": {change: func(b *ledger.Books) {
			b.View.Order.Total = inr(600000)
			b.Entry.Intents[0].Body, b.Entry.Intents[0].ApprovalIds = []byte(`{"reason":"goodwill"}`), nil
		}, want: ledger.CodeOrderOver, about: "req-1"},
		"dashboard took the order below": {change: func(b *ledger.Books) {
			b.View.Order.Total = inr(500000)
			add(providerRefund("rf_2", "pay_c", 5000, pending, ""))(b)
		}, want: ledger.CodeWithoutIntent},
		"paid in two currencies": {change: func(b *ledger.Books) {
			b.View.Captures[0].Amount, b.View.Order.Total = money.New(200000, "USD"), inr(400000)
		}},
		"order contradictory": {change: func(b *ledger.Books) { b.View.Captures[0].Settled = false }, want: ledger.CodeOrderContra},
		"unknown status":      {change: func(b *ledger.Books) { b.View.Refunds[0].Status = amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN }, want: ledger.CodeOrderContra},
		"listed for the tenant only": {change: func(b *ledger.Books) {
			b.Listed = []*amendsv1.Refund{providerRefund("rf_8", "pay_c", 1, pending, ""), b.View.Refunds[0]}
		}, want: ledger.CodeOrderContra},
		"order missing":            {change: func(b *ledger.Books) { b.View = ledger.View{Tenant: "acme-in"} }, want: ledger.CodeOrderMissing, about: "req-1"},
		"order missing, not begun": {change: func(b *ledger.Books) { b.View, b.Entry = ledger.View{Tenant: "acme-in"}, nil }},
		"no entry":                 {change: func(b *ledger.Books) { b.Entry, b.View.Refunds = nil, nil }},
		"ledger lost (B51)":        {change: func(b *ledger.Books) { b.Entry = nil }, want: ledger.CodeUnknownReference},
		"sums differ":              {change: func(b *ledger.Books) { b.Entry.OrderSum = inr(1) }, want: ledger.CodeLedgerContra},
		"begun and withdrawn": {change: func(b *ledger.Books) {
			b.Entry.Tombstones = []*amendsv1.Tombstone{{IdempotencyKey: keyB, CaseId: "req-1", CancelRevision: 1, At: timestamppb.New(now)}}
		}, want: ledger.CodeLedgerContra, about: "req-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := books(t)
			c.change(&b)
			got := b.Balance()
			want := []string{c.want}
			if c.want == "" {
				want = nil
			}
			if !slices.Equal(codes(got), want) {
				t.Fatalf("found %v, want %v: %v", codes(got), want, got.Findings)
			}
			if c.moved == 0 != (len(got.Moved) == 0) || len(got.Moved) == 1 && (got.Moved[0].Status != c.moved || got.Moved[0].Key != keyB) {
				t.Errorf("moved %v, want %s", got.Moved, c.moved)
			}
			for _, f := range got.Findings {
				if f.GetAboutCaseId() != c.about || len(f.GetRecords()) < 1 {
					t.Errorf("about %q, want %q: %v", f.GetAboutCaseId(), c.about, f)
				}
				if err := envelope.Validate(f); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func outcome(b *ledger.Books) *amendsv1.EffectOutcome { return b.Entry.GetIntents()[0].GetOutcome() }

func sums(b *ledger.Books) {
	if err := ledger.Sum(b.Entry); err != nil {
		panic(err)
	}
}

func doubtful(b *ledger.Books) { classed(b, unknown) }

func classed(b *ledger.Books, class amendsv1.EffectClass) {
	o := outcome(b)
	o.Class, o.RefundId, o.ProviderStatus = class, "", 0
	sums(b)
}

func lost(b *ledger.Books, payment string) {
	b.View.Disputes = []*amendsv1.Dispute{{DisputeId: "dp_1", PaymentId: payment, Status: amendsv1.DisputeStatus_DISPUTE_STATUS_LOST}}
}

// A finding has the same name later, when a status has moved on, and shows both
// sides; what the provider sends beyond our bounds does not break it.
func TestFindingsKeepTheirNames(t *testing.T) {
	t.Parallel()
	b := books(t)
	b.View.Refunds = append(b.View.Refunds, providerRefund("rf_2", "pay_c", 5000, pending, "refund:"+strings.Repeat("x", 400)))
	first := b.Balance().Findings
	b.At = b.At.Add(24 * time.Hour)
	b.View.Refunds[1].Status = succeeded
	second := b.Balance().Findings
	if len(first) != 1 || len(second) != 1 || first[0].GetFindingId() != second[0].GetFindingId() || ident.Token(ident.FindingCase(first[0].GetFindingId())) != nil {
		t.Errorf("%v, then %v", first, second)
	}
	if r := first[0].GetRecords(); len(r) != 2 || r[0].GetSource() != "provider" || r[1].GetStatus() != "absent" {
		t.Errorf("records %v", r)
	}
	b.View.Refunds[1].RefundId, b.View.Refunds[1].Amount = strings.Repeat("é", 200), money.New(-5, "rupees")
	for _, f := range b.Balance().Findings {
		if err := envelope.Validate(f); err != nil {
			t.Error(err)
		}
	}
}

// Too much was given back while it was in doubt whether a refund was made, and
// still when it was: the same finding, once.
func TestOverRefundsKeepTheirNames(t *testing.T) {
	t.Parallel()
	for code, over := range map[string]func(*ledger.Books){
		ledger.CodeCaptureOver: func(b *ledger.Books) { b.View.Captures[1].Amount = inr(149999) },
		ledger.CodeOrderOver:   func(b *ledger.Books) { b.View.Order.Total = inr(600000) },
	} {
		ids := map[string]bool{}
		look := func(change ...func(*ledger.Books)) {
			b := books(t)
			b.Entry = begin(t, b.Entry, action("req-2", refund("pay_b", 50000)), "apr-2")
			b.At = now.Add(10 * time.Minute)
			for _, f := range append(change, over) {
				f(&b)
			}
			for _, f := range b.Balance().Findings {
				if f.GetCode() != code {
					t.Errorf("%s besides: %v", code, f)
				}
				ids[f.GetFindingId()] = true
			}
		}
		const second = "refund:req-2:pay_b"
		look() // in doubt
		acknowledge := func(b *ledger.Books) {
			b.Entry = answered(t, b.Entry, second, ledger.Answer{Class: acknowledged, RefundID: "rf_2", Status: pending})
		}
		shown := func(b *ledger.Books) {
			b.View.Refunds = append(b.View.Refunds, providerRefund("rf_2", "pay_b", 50000, pending, second))
			slices.Reverse(b.View.Refunds)
		}
		look(shown)
		look(shown, acknowledge)
		look(shown, acknowledge, func(b *ledger.Books) { b.View.Refunds[0].Status = succeeded })
		if len(ids) != 1 {
			t.Errorf("%s is %d findings: %v", code, len(ids), ids)
		}
	}
}

// An order whose id is no token has no ledger: whatever stands at the provider
// is nobody's, under a name of its own, and its id is text.
func TestAnOrderWithoutAPlaceInTheLedger(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for id, text := range map[string]string{"A.1": "A.1", "": "none", "a\nApproved: yes": `a\nApproved: yes`, "Ä": `\u00c4`, strings.Repeat("x", 400): strings.Repeat("x", 64), strings.Repeat("x", 401): strings.Repeat("x", 64)} {
		b := ledger.Books{Tenant: "acme-in", OrderID: id, At: now, Listed: []*amendsv1.Refund{
			providerRefund("rf_1", "pay_b", 100, pending, ""), providerRefund("rf_2", "pay_b", 100, failed, ""), providerRefund("rf_3", "pay_b", 100, succeeded, keyB),
		}}
		got := b.Unusable()
		if want := []string{ledger.CodeUnknownReference, ledger.CodeWithoutIntent}; !slices.Equal(codes(ledger.Balance{Findings: got}), want) {
			t.Fatalf("%q: %v", id, got)
		}
		for _, f := range got {
			if err := envelope.Validate(f); err != nil || f.GetOrderId() != text || f.GetAboutCaseId() != "" || seen[f.GetFindingId()] {
				t.Errorf("%q: %v, %v", id, f, err)
			}
			seen[f.GetFindingId()] = true
		}
	}
}

// honest are the books of an order after refunds as the executor makes them,
// in any number, at any point of their lives.
func honest(t *rapid.T) ledger.Books {
	b := ledger.Books{Tenant: "acme-in", OrderID: "8472", View: view(), At: now.Add(2 * time.Hour), Grace: 5 * time.Minute, InDoubt: time.Hour}
	b.View.Order.Total = inr(1)
	n := rapid.IntRange(1, 4).Draw(t, "refunds")
	for i := range n {
		id, payment := fmt.Sprintf("req-%d", i), []string{"pay_a", "pay_b", "pay_c"}[rapid.IntRange(0, 2).Draw(t, "payment")]
		a := action(id, refund(payment, rapid.Int64Range(1, 30000).Draw(t, "minor")))
		key := a.GetRefunds()[0].GetIdempotencyKey()
		b.Entry = begin(t, b.Entry, a, "apr-"+id)
		at := providerRefund(fmt.Sprintf("rf_%d", i), payment, a.GetRefunds()[0].GetAmount().GetMinor(), pending, key)
		class := rapid.SampledFrom([]amendsv1.EffectClass{acknowledged, acknowledged, acknowledged, refusedClass, noEffect}).Draw(t, "class")
		if i == 0 {
			class = acknowledged
		}
		answer := ledger.Answer{Class: class}
		if class == acknowledged {
			answer.RefundID, answer.Status = at.GetRefundId(), rapid.SampledFrom([]amendsv1.RefundStatus{pending, succeeded, amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION}).Draw(t, "status")
			at.Status = answer.Status
			b.View.Refunds = append(b.View.Refunds, at)
			b.Entry.Sightings = append(b.Entry.Sightings, sighting("refund.created", at.GetRefundId(), now))
		}
		b.Entry = answered(t, b.Entry, key, answer)
	}
	return b
}

// What honest executions leave balances, and every single corruption of it is
// found under its code and no other (MONEY-3).
func TestBalanceProperty(t *testing.T) {
	t.Parallel()
	seeded := map[string]func(b *ledger.Books, r *amendsv1.Refund, in *amendsv1.EffectIntent){
		ledger.CodeWithoutIntent: func(b *ledger.Books, _ *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.View.Refunds = append(b.View.Refunds, providerRefund("rf_x", "pay_c", 7, succeeded, ""))
		},
		ledger.CodeUnknownReference: func(b *ledger.Books, _ *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.View.Refunds = append(b.View.Refunds, providerRefund("rf_x", "pay_c", 7, succeeded, "refund:req-x:pay_c"))
		},
		ledger.CodeTwoForOneIntent: func(b *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			twin := proto.CloneOf(r)
			twin.RefundId = "rf_x"
			b.View.Refunds = append(b.View.Refunds, twin)
		},
		ledger.CodeRefundMissing: func(b *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.View.Refunds = slices.DeleteFunc(b.View.Refunds, func(o *amendsv1.Refund) bool { return o == r })
		},
		ledger.CodePaymentDiffers: func(_ *ledger.Books, r *amendsv1.Refund, in *amendsv1.EffectIntent) {
			r.PaymentId = map[string]string{"pay_a": "pay_b", "pay_b": "pay_c", "pay_c": "pay_a"}[in.GetPaymentId()]
		},
		ledger.CodeAmountDiffers: func(_ *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			r.Amount = inr(r.GetAmount().GetMinor() + 1)
		},
		ledger.CodeReferenceDiffers: func(_ *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) { r.Reference = "" },
		ledger.CodeRefundIDDiffers: func(b *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.Entry.Sightings, r.RefundId = nil, "rf_x"
		},
		ledger.CodeFailedLater: func(_ *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) { r.Status = failed },
		ledger.CodeStatusDiffers: func(_ *ledger.Books, r *amendsv1.Refund, in *amendsv1.EffectIntent) {
			in.Outcome.ProviderStatus, r.Status = succeeded, pending
		},
		ledger.CodeInDoubt: func(_ *ledger.Books, _ *amendsv1.Refund, in *amendsv1.EffectIntent) { in.Outcome = nil },
		ledger.CodeOutcomeContra: func(b *ledger.Books, _ *amendsv1.Refund, in *amendsv1.EffectIntent) {
			in.Outcome = &amendsv1.EffectOutcome{Class: noEffect, At: timestamppb.New(now)}
			sums(b)
		},
		ledger.CodeEventAlone: func(b *ledger.Books, _ *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.Entry.Sightings = append(b.Entry.Sightings, sighting("refund.updated", "rf_x", now))
		},
		ledger.CodeEventContra: func(b *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.Entry.Sightings = append(b.Entry.Sightings, sighting("refund.failed", r.GetRefundId(), now))
		},
		ledger.CodeCaptureOver: func(b *ledger.Books, r *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			for _, c := range b.View.Captures {
				if c.GetPaymentId() == r.GetPaymentId() {
					c.Amount = inr(r.GetAmount().GetMinor() - 1)
				}
			}
		},
		ledger.CodeOrderOver: func(b *ledger.Books, _ *amendsv1.Refund, _ *amendsv1.EffectIntent) { b.View.Order.Total = inr(600000) },
		ledger.CodeOrderContra: func(b *ledger.Books, _ *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.View.Captures[0].Captured = false
		},
		ledger.CodeOrderMissing: func(b *ledger.Books, _ *amendsv1.Refund, _ *amendsv1.EffectIntent) {
			b.View = ledger.View{Tenant: "acme-in"}
		},
		ledger.CodeLedgerContra: func(b *ledger.Books, _ *amendsv1.Refund, _ *amendsv1.EffectIntent) { b.Entry.OrderSum = inr(123456789) },
	}
	names := make([]string, 0, len(seeded))
	for name := range seeded {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		b := honest(t)
		if got := b.Balance(); len(got.Findings) != 0 || len(got.Moved) != 0 {
			t.Fatalf("honest books do not balance: %v, moved %v", got.Findings, got.Moved)
		}
		code := rapid.SampledFrom(names).Draw(t, "corruption")
		r := b.View.Refunds[rapid.IntRange(0, len(b.View.Refunds)-1).Draw(t, "which")]
		seeded[code](&b, r, intent(t, b.Entry, r.GetReference()))
		got := codes(b.Balance())
		if !slices.Equal(got, []string{code}) {
			t.Fatalf("%s is found as %v", code, got)
		}
		if again := codes(b.Balance()); !slices.Equal(again, got) {
			t.Fatalf("found as %v, then as %v", got, again)
		}
	})
}
