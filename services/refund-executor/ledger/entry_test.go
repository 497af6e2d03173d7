package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// Bug B05: the same key with other parameters is refused here, before the
// provider has to. Bug B25: also when only the action changed.
func TestAKeyHasOneSetOfParametersB05B25(t *testing.T) {
	t.Parallel()
	first := action("req-1", refund("pay_b", 200000))
	key := first.GetRefunds()[0].GetIdempotencyKey()
	doubt := begin(t, nil, first, "apr-1-1")
	ack := answered(t, doubt, key, ledger.Answer{Class: acknowledged, RefundID: "rf_1"})
	idle := answered(t, doubt, key, ledger.Answer{Class: noEffect, Reason: "not_sent"})
	again := action("req-1", refund("pay_b", 200000))
	again.Proposal = 2
	for name, c := range map[string]struct {
		entry *amendsv1.EffectEntry
		ask   *amendsv1.ActionRecord
		want  string
	}{
		"the same, in doubt":               {doubt, first, "ok"},
		"the same, acknowledged":           {ack, first, "ok"},
		"another amount, in doubt":         {doubt, action("req-1", refund("pay_b", 2000000)), ledger.ReasonKeyReused},
		"another amount, acknowledged":     {ack, action("req-1", refund("pay_b", 100000)), ledger.ReasonKeyReused},
		"another amount, nothing was done": {idle, action("req-1", refund("pay_b", 100000)), ledger.ReasonKeyReused},
		"another action, in doubt":         {doubt, again, ledger.ReasonKeyReused},
		"another action, acknowledged":     {ack, again, ledger.ReasonKeyReused},
		"another action, nothing was done": {idle, again, "ok"},
	} {
		_, err := ledger.Positions(c.entry, c.ask, sha(t, c.ask))
		if got := reasonOf(t, err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Bug B27: an approval is spent by one action.
func TestAnApprovalIsSpentOnceB27(t *testing.T) {
	t.Parallel()
	first := action("req-1", refund("pay_b", 200000))
	e := begin(t, nil, first, "apr-1-1")
	if got := intent(t, e, "refund:req-1:pay_b").GetApprovalIds(); len(got) != 1 || got[0] != "apr-1-1" {
		t.Errorf("intent spends %v", got)
	}
	_, err := tryBegin(t, e, action("req-1", refund("pay_c", 200000)), "apr-1-1")
	if got := reasonOf(t, err); got != ledger.ReasonApprovalSpent {
		t.Errorf("a second action: %s", got)
	}
	if _, err := tryBegin(t, e, first, "apr-1-1"); err != nil {
		t.Errorf("the same action again: %v", err)
	}
}

// An action is begun as a whole, in one entry, with a call number for each.
func TestIntentsOfOneActionAreOneWrite(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_b", 200000), refund("pay_c", 150000))
	e := begin(t, nil, a, "apr-1-1", "apr-1-2")
	if e.GetRevision() != 1 || len(e.GetIntents()) != 2 || e.GetOrderSum().GetMinor() != 350000 || len(e.GetSums()) != 2 || e.GetSums()[1].GetRefunded().GetMinor() != 150000 {
		t.Errorf("entry %v", e)
	}
	for _, in := range e.GetIntents() {
		if in.GetCalls() != 1 || !in.GetCallBefore().AsTime().Equal(now.Add(window)) || in.GetOutcome() != nil {
			t.Errorf("intent %v", in)
		}
	}
	before := proto.Clone(e)
	n := begin(t, e, a)
	in := intent(t, n, "refund:req-1:pay_b")
	if in.GetCalls() != 2 || len(in.GetApprovalIds()) != 2 || !bytes.Equal(in.GetBody(), e.GetIntents()[0].GetBody()) {
		t.Errorf("taken over as %v", in)
	}
	if !proto.Equal(before, e) {
		t.Error("the entry given was changed")
	}
}

// A refusal releases an intent only when no other call can be open.
func TestOutcomeIsBelievedFromTheSoleCall(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_b", 200000))
	const key = "refund:req-1:pay_b"
	one := begin(t, nil, a)
	two := begin(t, one, a)
	idleThenAgain := begin(t, answered(t, one, key, ledger.Answer{Class: noEffect, Reason: "not_sent"}), a)
	ack := answered(t, one, key, ledger.Answer{Class: acknowledged, RefundID: "rf_1"})
	for name, c := range map[string]struct {
		entry  *amendsv1.EffectEntry
		call   uint32
		answer ledger.Answer
		want   amendsv1.EffectClass
		reason string
		sum    int64
	}{
		"refused":                        {one, 1, ledger.Answer{Class: refusedClass, Reason: "disputed"}, refusedClass, "disputed", 0},
		"nothing sent":                   {one, 1, ledger.Answer{Class: noEffect, Reason: "not_sent"}, noEffect, "not_sent", 0},
		"lost":                           {one, 1, ledger.Answer{Class: unknown, Reason: "timeout"}, unknown, "timeout", 200000},
		"acknowledged":                   {one, 1, ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: amendsv1.RefundStatus_REFUND_STATUS_PENDING}, acknowledged, "", 200000},
		"acknowledged without a refund":  {one, 1, ledger.Answer{Class: acknowledged}, unknown, ledger.ReasonNoRefundID, 200000},
		"acknowledged as failed":         {one, 1, ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: amendsv1.RefundStatus_REFUND_STATUS_FAILED}, refusedClass, ledger.ReasonProviderFailed, 0},
		"refused, another call open":     {two, 2, ledger.Answer{Class: refusedClass, Reason: "disputed"}, unknown, ledger.ReasonOtherCallOpen, 200000},
		"nothing sent, taken over":       {two, 1, ledger.Answer{Class: noEffect, Reason: "not_sent"}, unknown, ledger.ReasonOtherCallOpen, 200000},
		"acknowledged, another open":     {two, 1, ledger.Answer{Class: acknowledged, RefundID: "rf_1"}, acknowledged, "", 200000},
		"nothing sent, again":            {idleThenAgain, 2, ledger.Answer{Class: noEffect, Reason: "not_sent"}, noEffect, "not_sent", 0},
		"late answer of a released call": {idleThenAgain, 1, ledger.Answer{Class: noEffect, Reason: "not_sent"}, unknown, ledger.ReasonOtherCallOpen, 200000},
		"refused after acknowledged":     {ack, 1, ledger.Answer{Class: refusedClass, Reason: "disputed"}, acknowledged, "", 200000},
	} {
		n, err := ledger.WriteOutcome(c.entry, key, c.call, c.answer, now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n == nil {
			n = c.entry
		}
		o := intent(t, n, key).GetOutcome()
		if o.GetClass() != c.want || o.GetReason() != c.reason || n.GetOrderSum().GetMinor() != c.sum {
			t.Errorf("%s: %v %q, sum %d", name, o.GetClass(), o.GetReason(), n.GetOrderSum().GetMinor())
		}
	}
	if _, err := ledger.WriteOutcome(ack, key, 1, ledger.Answer{Class: acknowledged, RefundID: "rf_2"}, now); !errors.Is(err, ledger.ErrOtherRefund) {
		t.Errorf("a second refund id: %v", err)
	}
	if n, err := ledger.WriteOutcome(ack, key, 1, ledger.Answer{Class: acknowledged, RefundID: "rf_1"}, now); n != nil || err != nil {
		t.Errorf("the same again wrote %v, %v", n, err)
	}
	if _, err := ledger.WriteOutcome(one, "refund:req-9:pay_b", 1, ledger.Answer{Class: acknowledged, RefundID: "rf_1"}, now); !errors.Is(err, ledger.ErrNoIntent) {
		t.Errorf("an outcome without an intent: %v", err)
	}
}

// Cancel and execute meet in one entry: whichever is written first decides.
func TestTombstoneOrIntentWhicheverIsFirst(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_b", 200000), refund("pay_c", 200000))
	dead, err := ledger.WriteTombstones(nil, a, 3, now)
	if err != nil || len(dead.GetTombstones()) != 2 {
		t.Fatalf("tombstones %v, %v", dead, err)
	}
	_, err = ledger.Positions(dead, a, sha(t, a))
	if r, ok := errors.AsType[*ledger.Refusal](err); !ok || r.Class != notBegun || r.Reason != ledger.ReasonCancelled || r.CancelRevision != 3 {
		t.Errorf("execute after cancel: %v", err)
	}
	if n, err := ledger.WriteTombstones(dead, a, 4, now); n != nil || err != nil {
		t.Errorf("a second cancel wrote %v, %v", n, err)
	}
	begun := begin(t, nil, a)
	if n, err := ledger.WriteTombstones(begun, a, 3, now); n != nil || err != nil {
		t.Errorf("cancel after the intent wrote %v, %v", n, err)
	}
	idle := answered(t, answered(t, begun, "refund:req-1:pay_b", ledger.Answer{Class: noEffect}), "refund:req-1:pay_c", ledger.Answer{Class: noEffect})
	if n, err := ledger.WriteTombstones(idle, a, 3, now); err != nil || len(n.GetTombstones()) != 2 {
		t.Errorf("cancel of what provably did nothing: %v, %v", n, err)
	}
}

func TestResultIsTheWorstOfItsRefunds(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_b", 200000), refund("pay_c", 200000))
	begun := begin(t, nil, a)
	ack := answered(t, begun, "refund:req-1:pay_b", ledger.Answer{Class: acknowledged, RefundID: "rf_1"})
	for name, c := range map[string]struct {
		entry  *amendsv1.EffectEntry
		want   amendsv1.EffectClass
		reason string
	}{
		"nothing known":       {begun, unknown, ledger.ReasonOpen},
		"one acknowledged":    {ack, unknown, ledger.ReasonOpen},
		"and one refused":     {answered(t, ack, "refund:req-1:pay_c", ledger.Answer{Class: refusedClass, Reason: "disputed"}), refusedClass, "disputed"},
		"and one not sent":    {answered(t, ack, "refund:req-1:pay_c", ledger.Answer{Class: noEffect, Reason: "not_sent"}), noEffect, "not_sent"},
		"both acknowledged":   {answered(t, ack, "refund:req-1:pay_c", ledger.Answer{Class: acknowledged, RefundID: "rf_2"}), acknowledged, ""},
		"the other in doubt":  {answered(t, ack, "refund:req-1:pay_c", ledger.Answer{Class: unknown, Reason: "timeout"}), unknown, "timeout"},
		"nothing is recorded": {nil, amendsv1.EffectClass_EFFECT_CLASS_UNSPECIFIED, ""},
	} {
		positions, err := ledger.Positions(c.entry, a, sha(t, a))
		if err != nil {
			t.Fatal(err)
		}
		res := ledger.Result(sha(t, a), positions)
		if res.GetClass() != c.want || res.GetReason() != c.reason || len(res.GetRefunds()) != len(c.entry.GetIntents()) {
			t.Errorf("%s: %v", name, res)
		}
	}
}

func TestAnEntryIsBounded(t *testing.T) {
	t.Parallel()
	var e *amendsv1.EffectEntry
	for i := range ledger.MaxIntents {
		e = begin(t, e, action(fmt.Sprintf("req-%d", i), refund("pay_b", 1)))
	}
	_, err := tryBegin(t, e, action("req-more", refund("pay_b", 1)))
	if got := reasonOf(t, err); got != ledger.ReasonLedgerFull {
		t.Errorf("one more intent: %s", got)
	}
	a := action("req-1", refund("pay_b", 1))
	e = nil
	for range ledger.MaxCalls {
		e = begin(t, e, a)
	}
	_, err = tryBegin(t, e, a)
	if got := reasonOf(t, err); got != "undecidable "+ledger.ReasonCallsSpent {
		t.Errorf("one more call: %s", got)
	}
}

func TestCaps(t *testing.T) {
	t.Parallel()
	policy := ledger.Policy{{Currency: "INR", Approval: 100000, Second: 5000000, PerRefund: 99999, PerOrder: 99999, TenantHour: 250000, TenantDay: 400000}}
	for _, c := range []struct {
		minor int64
		code  string
		want  int
	}{{99999, "INR", 0}, {100000, "INR", 1}, {4999999, "INR", 1}, {5000000, "INR", 2}, {1, "JPY", 1}, {99999999, "JPY", 1}} {
		sum := inr(c.minor)
		sum.Currency = c.code
		if got := policy.Approvers(sum); got != c.want {
			t.Errorf("Approvers(%d %s) = %d, want %d", c.minor, c.code, got, c.want)
		}
	}
	reserve := func(w *amendsv1.CapWindow, caseID string, minor, recent int64, at time.Time) (*amendsv1.CapWindow, error) {
		a := action(caseID, refund("pay_b", minor))
		positions, err := ledger.Positions(nil, a, sha(t, a))
		if err != nil {
			t.Fatal(err)
		}
		return policy.Reserve(w, "acme-in", positions, inr(recent), at)
	}
	must := func(n *amendsv1.CapWindow, err error) *amendsv1.CapWindow {
		t.Helper()
		if err != nil || n == nil {
			t.Fatalf("reserve: %v, %v", n, err)
		}
		return n
	}
	w := must(reserve(nil, "req-1", 90000, 90000, now))
	if n, err := reserve(w, "req-1", 90000, 90000, now.Add(time.Second)); n != nil || err != nil {
		t.Errorf("the same again: %v, %v", n, err)
	}
	if n := must(reserve(w, "req-1", 90000, 90000, now.Add(30*time.Minute))); len(n.GetReservations()) != 1 || !n.GetReservations()[0].GetAt().AsTime().Equal(now.Add(30*time.Minute)) {
		t.Errorf("half an hour later: %v", n)
	}
	w = must(reserve(w, "req-2", 90000, 90000, now.Add(time.Minute)))
	for _, c := range []struct {
		minor, recent int64
		at            time.Duration
		want          string
	}{
		{100000, 100000, time.Minute, ledger.ReasonCapOrder},
		{100000, 1, time.Minute, ledger.ReasonCapRefund},
		{90000, 90000, 59 * time.Minute, ledger.ReasonCapHour},
		{70000, 70000, 59 * time.Minute, "ok"},
		{90000, 90000, 62 * time.Minute, "ok"},
	} {
		_, err := reserve(w, "req-3", c.minor, c.recent, now.Add(c.at))
		if got := reasonOf(t, err); got != c.want {
			t.Errorf("%d after %s: %s, want %s", c.minor, c.at, got, c.want)
		}
	}
	w = must(reserve(w, "req-3", 90000, 90000, now.Add(2*time.Hour)))
	w = must(reserve(w, "req-4", 90000, 90000, now.Add(4*time.Hour)))
	if _, err := reserve(w, "req-5", 90000, 90000, now.Add(23*time.Hour)); reasonOf(t, err) != ledger.ReasonCapDay {
		t.Errorf("a fifth within the day: %v", err)
	}
	if n := must(reserve(w, "req-5", 90000, 90000, now.Add(24*time.Hour+90*time.Second))); len(n.GetReservations()) != 4 {
		t.Errorf("after a day: %d reservations", len(n.GetReservations()))
	}
}

func TestTheCapWindowIsBounded(t *testing.T) {
	t.Parallel()
	policy := ledger.Policy{{Currency: "INR", Approval: 100000, Second: 5000000, PerRefund: 99999, PerOrder: 99999, TenantHour: 1 << 40, TenantDay: 1 << 40}}
	w := &amendsv1.CapWindow{Tenant: "acme-in"}
	for i := range ledger.MaxReservations {
		w.Reservations = append(w.Reservations, &amendsv1.CapReservation{IdempotencyKey: fmt.Sprintf("refund:req-%d:pay_b", i), Amount: inr(1), At: timestamppb.New(now)})
	}
	a := action("req-more", refund("pay_b", 1))
	positions, err := ledger.Positions(nil, a, sha(t, a))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Reserve(w, "acme-in", positions, inr(1), now); reasonOf(t, err) != ledger.ReasonCapFull {
		t.Errorf("one more reservation: %v", err)
	}
}
