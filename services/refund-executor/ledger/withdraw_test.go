package ledger_test

import (
	"errors"
	"testing"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// A withdrawal takes every key of which nothing was done, whatever became of the
// others, and the answer tells them apart. Where something was made it is not
// the answer that nothing was begun; where something is in doubt that comes
// first. Nothing of the action is begun or sent again after it (MONEY-3, TRUTH-1).
func TestAWithdrawalTakesWhatIsLeftMONEY3TRUTH1(t *testing.T) {
	t.Parallel()
	a := action("req-1", refund("pay_a", 100), refund("pay_b", 100))
	one, two := a.GetRefunds()[0].GetIdempotencyKey(), a.GetRefunds()[1].GetIdempotencyKey()
	idle := answered(t, begin(t, nil, a, "apr-1"), two, ledger.Answer{Class: noEffect, Reason: "http_429"})
	const failed = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	for name, c := range map[string]struct {
		first  ledger.Answer
		class  amendsv1.EffectClass
		reason string
	}{
		"made":             {ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: pending}, refusedClass, ledger.ReasonWithdrawnInPart},
		"made, and failed": {ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: failed}, refusedClass, ledger.ReasonProviderFailed},
		"refused":          {ledger.Answer{Class: refusedClass, Reason: "disputed"}, refusedClass, "disputed"},
		"in doubt":         {ledger.Answer{Class: unknown, Reason: "timeout"}, unknown, "timeout"},
		"nothing done":     {ledger.Answer{Class: noEffect, Reason: "http_429"}, notBegun, ledger.ReasonCancelled},
	} {
		n, err := ledger.WriteTombstones(answered(t, idle, one, c.first), a, 2, now)
		if err != nil || n == nil {
			t.Fatalf("%s: %v, %v", name, n, err)
		}
		if again, err := ledger.WriteTombstones(n, a, 2, now); again != nil || err != nil {
			t.Errorf("%s: withdrawn again: %v, %v", name, again, err)
		}
		p, err := ledger.Positions(n, a, sha(t, a))
		if c.class == notBegun {
			if r, ok := errors.AsType[*ledger.Refusal](err); !ok || r.Class != notBegun || r.Reason != c.reason || r.CancelRevision != 2 || len(n.GetTombstones()) != 2 {
				t.Errorf("%s: %v, %v", name, err, n)
			}
			continue
		}
		if err != nil || len(n.GetTombstones()) != 1 {
			t.Fatalf("%s: %v, %v", name, err, n)
		}
		res := ledger.Result(sha(t, a), p)
		if res.GetClass() != c.class || res.GetReason() != c.reason || len(res.GetRefunds()) != 2 || res.GetRefunds()[1].GetOutcome().GetClass() != notBegun {
			t.Errorf("%s: answered %v", name, res)
		}
		if _, err := tryBegin(t, n, a, "apr-1"); reasonOf(t, err) != ledger.ReasonWithdrawnInPart {
			t.Errorf("%s: begun again: %v", name, err)
		}
	}
}

// What a person settled not to exist is begun by no delivery of that action, nor
// by the older one that the key was taken over from; a newer one may begin it.
func TestWhatIsSettledToBeNoneIsOverMONEY3(t *testing.T) {
	t.Parallel()
	older, a, newer := action("req-1", refund("pay_b", 100)), action("req-1", refund("pay_b", 100)), action("req-1", refund("pay_b", 100))
	a.Proposal, newer.Proposal = 2, 3
	key := a.GetRefunds()[0].GetIdempotencyKey()
	nothing := ledger.Answer{Class: noEffect, Reason: "http_429"}
	settle := func(e *amendsv1.EffectEntry, id string) (*amendsv1.EffectEntry, error) {
		return ledger.WriteSettlement(e, ledger.Settling{
			Action: a, SHA256: sha(t, a), Positions: positions(t, e, a), By: "maya", Look: look(shows(made("rf_1", "pay_b", "", 100))), At: now,
			Answers: []*amendsv1.Settlement{{IdempotencyKey: key, RefundId: id}},
		})
	}
	begun := answered(t, begin(t, nil, older, "apr-1"), key, nothing)
	if _, err := settle(begun, "rf_1"); reasonOf(t, err) != "undecidable "+ledger.ReasonNothingBegun {
		t.Errorf("a refund for what another action had begun: %v", err)
	}
	e, err := settle(begun, "")
	if err != nil || e.GetRevision() != begun.GetRevision()+1 {
		t.Fatalf("%v, %v", e, err)
	}
	if n, err := settle(e, ""); n != nil || err != nil {
		t.Errorf("settled again: %v, %v", n, err)
	}
	for name, gone := range map[string]*amendsv1.ActionRecord{"the action": a, "the one before it": older} {
		if _, err := tryBegin(t, e, gone, "apr-9"); reasonOf(t, err) != ledger.ReasonSettledAbsent {
			t.Errorf("%s: %v", name, err)
		}
	}
	e = answered(t, begin(t, e, newer, "apr-3"), key, nothing)
	if _, err := tryBegin(t, e, a, "apr-9"); reasonOf(t, err) != ledger.ReasonSettledAbsent {
		t.Errorf("the action, after a newer one: %v", err)
	}
	e = answered(t, begin(t, nil, a, "apr-2"), key, nothing)
	if n, err := settle(e, "rf_1"); err != nil || intent(t, n, key).GetOutcome().GetRefundId() != "rf_1" {
		t.Errorf("a refund by hand of a key thought idle: %v, %v", n, err)
	}
}
