package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

const (
	pending   = amendsv1.RefundStatus_REFUND_STATUS_PENDING
	succeeded = amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED
)

// look is a reading made when no call can be under way any more.
func look(v ledger.View) ledger.Look {
	return ledger.Look{View: v, At: now.Add(window + callTimeout + ledger.ClockMargin), StoredAt: now, CallTimeout: callTimeout}
}

func shows(refunds ...*amendsv1.Refund) ledger.View {
	v := view()
	v.Refunds = refunds
	return v
}

func made(id, payment, reference string, minor int64) *amendsv1.Refund {
	return &amendsv1.Refund{RefundId: id, PaymentId: payment, Reference: reference, Amount: inr(minor), Status: pending}
}

func positions(t *testing.T, e *amendsv1.EffectEntry, a *amendsv1.ActionRecord) []ledger.Position {
	t.Helper()
	p, err := ledger.Positions(e, a, sha(t, a))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// An equal refund that is another intent's, by its reference or because
// a person said so, is not the one in doubt, and cannot be settled to be.
func TestARefundIsOneIntentsMONEY3(t *testing.T) {
	t.Parallel()
	one, two := action("req-1", refund("pay_b", 100000)), action("req-2", refund("pay_b", 100000))
	e := begin(t, begin(t, nil, one, "apr-1"), two, "apr-2")
	mine := made("rf_1", "pay_b", one.GetRefunds()[0].GetIdempotencyKey(), 100000)
	hand := made("rf_2", "pay_b", "", 100000)

	if a, err := ledger.LookUp(e, two.GetRefunds()[0].GetIdempotencyKey(), look(shows(mine))); err != nil || a.Reason != ledger.ReasonProvenAbsent {
		t.Errorf("beside another's: %v, %v", a, err)
	}
	settle := func(e *amendsv1.EffectEntry, a *amendsv1.ActionRecord, id string) (*amendsv1.EffectEntry, error) {
		return ledger.WriteSettlement(e, ledger.Settling{
			Action: a, SHA256: sha(t, a), Positions: positions(t, e, a), By: "maya", Look: look(shows(mine, hand)), At: now,
			Answers: []*amendsv1.Settlement{{IdempotencyKey: a.GetRefunds()[0].GetIdempotencyKey(), RefundId: id}},
		})
	}
	if _, err := settle(e, two, "rf_1"); reasonOf(t, err) != "undecidable "+ledger.ReasonSettleTaken {
		t.Errorf("another's by its reference: %v", err)
	}
	next, err := settle(e, two, "rf_2")
	if err != nil {
		t.Fatal(err)
	}
	if next.GetRevision() != e.GetRevision()+1 || intent(t, next, two.GetRefunds()[0].GetIdempotencyKey()).GetOutcome().GetRefundId() != "rf_2" {
		t.Errorf("settled %v", next)
	}
	if _, err := settle(next, one, "rf_2"); reasonOf(t, err) != "undecidable "+ledger.ReasonSettleExists {
		t.Errorf("another's, while ours is there: %v", err)
	}
	mine.Reference = "" // then both were made by hand
	if _, err := settle(next, one, "rf_2"); reasonOf(t, err) != "undecidable "+ledger.ReasonSettleTaken {
		t.Errorf("another's by a person's word: %v", err)
	}
	if a, err := ledger.LookUp(next, one.GetRefunds()[0].GetIdempotencyKey(), look(shows(hand))); err != nil || a.Reason != ledger.ReasonProvenAbsent {
		t.Errorf("beside a settled one: %v, %v", a, err)
	}
	if _, err := ledger.LookUp(e, one.GetRefunds()[0].GetIdempotencyKey(), look(shows(hand))); reasonOf(t, err) != "undecidable "+ledger.ReasonEqualRefund {
		t.Errorf("beside nobody's: %v", err)
	}
}

// A settled refund without our reference fills its room once: as the provider's
// and as the intent's it is the same.
func TestASettledRefundCountsOnceMONEY1MONEY4(t *testing.T) {
	t.Parallel()
	one := action("req-1", refund("pay_b", 150000))
	hand := made("rf_2", "pay_b", "", 150000)
	e := begin(t, nil, one, "apr-1")
	next, err := ledger.WriteSettlement(e, ledger.Settling{
		Action: one, SHA256: sha(t, one), Positions: positions(t, e, one), By: "maya", Look: look(shows(hand)), At: now,
		Answers: []*amendsv1.Settlement{{IdempotencyKey: one.GetRefunds()[0].GetIdempotencyKey(), RefundId: "rf_2"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for minor, want := range map[int64]string{50000: "ok", 50001: ledger.ReasonExceedsCaptured} {
		if _, err := ask(t, next, shows(hand), action("req-2", refund("pay_b", minor)), true); reasonOf(t, err) != want {
			t.Errorf("%d more: %v, want %s", minor, err, want)
		}
	}
}

// Every refund in doubt wants an answer, and what one answer gets wrong is
// written of none.
func TestASettlementIsWhole(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_b", 100000), refund("pay_c", 100000))
	e := begin(t, nil, a, "apr-1")
	before := proto.CloneOf(e)
	for want, ids := range map[string][]string{
		"undecidable " + ledger.ReasonSettleIncomplete: {"rf_1"},
		"undecidable " + ledger.ReasonSettleUnknown:    {"rf_1", "rf_9"},
		"ok": {"rf_1", ""},
	} {
		s := ledger.Settling{Action: a, SHA256: sha(t, a), Positions: positions(t, e, a), By: "maya", Look: look(shows(made("rf_1", "pay_b", "", 100000))), At: now}
		for i, id := range ids {
			s.Answers = append(s.Answers, &amendsv1.Settlement{IdempotencyKey: a.GetRefunds()[i].GetIdempotencyKey(), RefundId: id})
		}
		n, err := ledger.WriteSettlement(e, s)
		if reasonOf(t, err) != want || (n != nil) != (want == "ok") {
			t.Errorf("%v: %v, %v", ids, n, err)
		}
	}
	if !proto.Equal(before, e) {
		t.Error("the entry was changed in place")
	}
}

// The newest sightings are kept, within their bound, whatever a provider says.
func TestSightingsAreBounded(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_b", 100000))
	key := a.GetRefunds()[0].GetIdempotencyKey()
	e := answered(t, begin(t, nil, a, "apr-1"), key, ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: pending})
	r := made("rf_1", "pay_b", key, 100000)
	for i := range 3 * ledger.MaxSightings {
		r.Status = []amendsv1.RefundStatus{succeeded, pending}[i%2]
		events := []*amendsv1.ProviderEvent{{OrderId: "8472", Kind: fmt.Sprint("refund.", i), ObjectId: "rf_1"}}
		n, err := ledger.Observe(e, shows(r), events, now.Add(time.Duration(i)*time.Second))
		if err != nil || n == nil {
			t.Fatalf("%d: %v, %v", i, n, err)
		}
		e = n
	}
	if n := len(e.GetSightings()); n != ledger.MaxSightings {
		t.Errorf("%d sightings", n)
	}
	if last := e.GetSightings()[len(e.GetSightings())-1]; last.GetStatus() != pending || intent(t, e, key).GetOutcome().GetProviderStatus() != succeeded {
		t.Errorf("last sighting %v, outcome %v", last, intent(t, e, key).GetOutcome())
	}
	if n, err := ledger.Observe(e, shows(r), nil, now); n != nil || err != nil {
		t.Errorf("nothing new: %v, %v", n, err)
	}
}

// Until when a call may start is the word of a process; when the intent was
// stored is the broker's. Absence is proven after both, and never of an entry
// whose age is not known.
func TestAbsenceCountsFromTheStoringMONEY1(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_b", 100000))
	e := begin(t, nil, a, "apr-1")
	over := ledger.MaxCallWindow + callTimeout + ledger.ClockMargin
	for name, c := range map[string]struct {
		stored time.Time
		after  time.Duration
		proven bool
	}{
		"by both":                   {now, over, true},
		"too early by the intent":   {now.Add(-time.Hour), over - time.Nanosecond, false},
		"too early by the storing":  {now.Add(time.Hour), time.Hour + over - time.Nanosecond, false},
		"late enough by both again": {now.Add(time.Hour), time.Hour + over, true},
		"of unknown age":            {time.Time{}, 1000 * time.Hour, false},
	} {
		l := ledger.Look{View: view(), At: now.Add(c.after), StoredAt: c.stored, CallTimeout: callTimeout}
		got, err := ledger.LookUp(e, a.GetRefunds()[0].GetIdempotencyKey(), l)
		if err != nil || got.Proven != c.proven {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
