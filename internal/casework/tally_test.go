package casework_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const tallyKey = "refund:req-8472:pay_8472_b"

var tallyAt = time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)

// sides are the ledger's entry of order 8472 and the record of its case.
type sides struct {
	entry *amendsv1.EffectEntry
	rec   *amendsv1.CaseRecord
	// before is a record of the case that came earlier.
	before *amendsv1.CaseRecord
}

func tallySides() *sides {
	ago := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(tallyAt.Add(-d)) }
	amount := money.New(200000, "INR")
	outcome := func() *amendsv1.EffectOutcome {
		return &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, RefundId: "rf_5521", ProviderStatus: amendsv1.RefundStatus_REFUND_STATUS_PENDING, At: ago(2 * time.Hour)}
	}
	return &sides{
		entry: &amendsv1.EffectEntry{Tenant: "acme-in", OrderId: "8472", Intents: []*amendsv1.EffectIntent{{
			IdempotencyKey: tallyKey, CaseId: "req-8472", PaymentId: "pay_8472_b", Amount: amount, Outcome: outcome(),
		}}},
		rec: &amendsv1.CaseRecord{
			Tenant: "acme-in", CaseId: "req-8472", Version: 9, State: amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED, UpdatedAt: ago(2 * time.Hour),
			Triage: &amendsv1.Triage{OrderId: "8472"},
			Effect: &amendsv1.EffectResult{Class: amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, Refunds: []*amendsv1.RefundResult{{
				IdempotencyKey: tallyKey, PaymentId: "pay_8472_b", Amount: amount, Outcome: outcome(),
			}}},
			Timeline: []*amendsv1.TimelineEntry{{Version: 9, Row: "reply.verified.closed", State: amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED, At: ago(2 * time.Hour)}},
		},
	}
}

func (s *sides) intent() *amendsv1.EffectIntent { return s.entry.GetIntents()[0] }

func (s *sides) in(st amendsv1.CaseState, since time.Duration, next *time.Duration) {
	s.rec.State, s.rec.Effect = st, nil
	s.rec.Timeline[0].State, s.rec.Timeline[0].At = st, timestamppb.New(tallyAt.Add(-since))
	if next != nil {
		s.rec.Deadlines = &amendsv1.Deadlines{Effect: timestamppb.New(tallyAt.Add(*next))}
	}
}

func (s *sides) tally() (casework.Tally, casework.Entry) {
	t := casework.Tally{Tenant: "acme-in", At: tallyAt, Grace: 5 * time.Minute, Left: time.Hour}
	e := casework.Entry{EffectEntry: s.entry, At: tallyAt.Add(-2 * time.Hour)}
	cases := map[string]*casework.Account{}
	if s.rec != nil {
		a := new(casework.Account)
		if s.before != nil {
			a.Take(s.before)
		}
		a.Take(s.rec)
		cases[a.CaseID] = a
	}
	t.Case = func(id string) *casework.Account { return cases[id] }
	t.Ledger = func(string) casework.Entry { return e }
	return t, e
}

// findings gives what both directions find, by id.
func (s *sides) findings() map[string]*amendsv1.EffectFinding {
	t, e := s.tally()
	out := map[string]*amendsv1.EffectFinding{}
	found := t.Entry(e)
	if a := t.Case("req-8472"); a != nil {
		found = append(found, t.Account(a)...)
	}
	for _, f := range found {
		out[f.GetFindingId()] = f
	}
	return out
}

// Each way in which the ledger and a case can disagree, and what is none
// (MONEY-3, TRUTH-2, B51).
func TestTally(t *testing.T) {
	t.Parallel()
	soon, past := time.Minute, -time.Hour
	failed := amendsv1.RefundStatus_REFUND_STATUS_FAILED
	for name, c := range map[string]struct {
		change      func(*sides)
		want, about string
	}{
		"agree":             {change: func(*sides) {}},
		"case lost (B51)":   {change: func(s *sides) { s.rec = nil }, want: casework.CodeRefundWithoutCase},
		"ledger lost (B51)": {change: func(s *sides) { s.entry = nil }, want: casework.CodeCaseWithoutRefund, about: "req-8472"},
		"intent lost":       {change: func(s *sides) { s.entry.Intents = nil }, want: casework.CodeCaseWithoutRefund, about: "req-8472"},
		"outcome lost":      {change: func(s *sides) { s.intent().Outcome = nil }, want: casework.CodeCaseWithoutRefund, about: "req-8472"},
		"ledger says nothing was done": {change: func(s *sides) {
			s.intent().Outcome = &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT}
		}, want: casework.CodeCaseWithoutRefund, about: "req-8472"},
		"other refunds":   {change: func(s *sides) { s.intent().Outcome.RefundId = "rf_7" }, want: casework.CodeCaseRefundDiffers, about: "req-8472"},
		"declined":        {change: func(s *sides) { s.in(amendsv1.CaseState_CASE_STATE_DECLINED, time.Hour, nil) }, want: casework.CodeCaseWithoutOutcome, about: "req-8472"},
		"with people":     {change: func(s *sides) { s.rec.State = amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF }},
		"asks by itself":  {change: func(s *sides) { s.in(amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED, time.Hour, &soon) }},
		"asks no more":    {change: func(s *sides) { s.in(amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED, time.Hour, &past) }, want: casework.CodeCaseWithoutOutcome, about: "req-8472"},
		"reconciling":     {change: func(s *sides) { s.in(amendsv1.CaseState_CASE_STATE_RECONCILING, time.Minute, &soon) }},
		"left so":         {change: func(s *sides) { s.in(amendsv1.CaseState_CASE_STATE_RECONCILING, time.Hour, &past) }, want: casework.CodeCaseLeftReconciling, about: "req-8472"},
		"left and asking": {change: func(s *sides) { s.entry = nil; s.in(amendsv1.CaseState_CASE_STATE_RECONCILING, time.Hour, &soon) }, want: casework.CodeCaseLeftReconciling, about: "req-8472"},
		"nothing begun":   {change: func(s *sides) { s.entry = nil; s.in(amendsv1.CaseState_CASE_STATE_DECLINED, time.Hour, nil) }},
		"refused": {change: func(s *sides) {
			s.intent().Outcome = &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_REFUSED}
			s.rec.Effect = nil
		}},
		"failed, untold": {change: func(s *sides) { s.intent().Outcome.ProviderStatus = failed }, want: casework.CodeFailureUntold, about: "req-8472"},
		"failed, told": {change: func(s *sides) {
			s.intent().Outcome.ProviderStatus = failed
			s.rec.Effect.Refunds[0].Outcome.ProviderStatus = failed
		}},
		"failed, and nobody has decided on the note of it": {change: func(s *sides) {
			s.intent().Outcome.ProviderStatus = failed
			s.rec.Findings = []*amendsv1.EffectFinding{{Code: "refund_failed_later"}}
			s.rec.Timeline = append([]*amendsv1.TimelineEntry{{Row: "refund.failed_later.noted"}, {Row: "custody.taken"}}, s.rec.Timeline...)
		}, want: casework.CodeFailureUntold, about: "req-8472"},
		"failed, and a person decided since": {change: func(s *sides) {
			s.intent().Outcome.ProviderStatus = failed
			s.rec.Timeline = append([]*amendsv1.TimelineEntry{{Row: "refund.failed_later.noted"}, {Row: "custody.closes"}}, s.rec.Timeline...)
		}},
		"failed, and the executor is asked": {change: func(s *sides) {
			s.intent().Outcome.ProviderStatus = failed
			s.rec.Unconfirmed = []*amendsv1.ProviderEvent{{OrderId: "8472", Kind: "refund.found_failed", ObjectId: "rf_5521"}}
		}},
		"failed, and was with people": {change: func(s *sides) {
			s.intent().Outcome.ProviderStatus = failed
			s.rec.Timeline = append([]*amendsv1.TimelineEntry{{Row: "refund.failed_later"}}, s.rec.Timeline...)
		}},
		"ledger lost, and the case has just moved": {change: func(s *sides) {
			s.before, s.entry = tallySides().rec, nil
			s.before.Version = 7
			s.rec.UpdatedAt = timestamppb.New(tallyAt)
		}, want: casework.CodeCaseWithoutRefund, about: "req-8472"},
		"a later effect in its place": {change: func(s *sides) {
			s.before = tallySides().rec
			s.before.Version = 7
			s.rec.Effect = nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tallySides()
			c.change(s)
			found := s.findings()
			if c.want == "" && len(found) == 0 {
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %v, want %q", found, c.want)
			}
			f := slices.Collect(maps.Values(found))[0]
			if f.GetCode() != c.want || f.GetAboutCaseId() != c.about || f.GetOrderId() != "8472" {
				t.Errorf("found %v, want %s about %q", f, c.want, c.about)
			}
			if err := envelope.Validate(f); err != nil {
				t.Error(err)
			}
		})
	}
}

// What came to be a moment ago is left to itself.
func TestTallyGrace(t *testing.T) {
	t.Parallel()
	s := tallySides()
	s.rec = nil
	tally, e := s.tally()
	e.At = tallyAt.Add(-time.Minute)
	if found := tally.Entry(e); len(found) != 0 {
		t.Errorf("a young entry: %v", found)
	}
	s = tallySides()
	s.rec.UpdatedAt = timestamppb.New(tallyAt.Add(time.Second))
	s.entry = nil
	tally, _ = s.tally()
	if found := tally.Account(tally.Case("req-8472")); len(found) != 0 {
		t.Errorf("a young record: %v", found)
	}
}
