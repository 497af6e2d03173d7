package executor

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

var errDown = errors.New("down")

// pair gives an action of two refunds, of which the second is the one that is
// turned away; what becomes of the first is up to the fault.
func (s *solo) pair(first providertest.Fault) *amendsv1.TaskAssign {
	s.t.Helper()
	s.books.Load(firm, providertest.Paid(theirs, money.New(50000, "INR"), 3, s.clock))
	a := s.action(1)
	a.Refunds = nil
	for _, p := range []string{"pay_8472_b", "pay_8472_c"} {
		a.Refunds = append(a.Refunds, &amendsv1.ActionRefund{PaymentId: p, Amount: money.New(50000, "INR"), Kind: approval.KindDuplicate, IdempotencyKey: approval.Key("req-8472", p)})
	}
	task := s.execute(a)
	s.books.SetFault(func(c providertest.Call) providertest.Fault {
		if c.Key == ourKey {
			return first
		}
		return providertest.Busy
	})
	s.ask(task)
	s.books.SetFault(nil)
	return task
}

// each fails unless an answer says of each refund what became of it.
func (s *solo) each(what string, res *amendsv1.EffectResult, want ...amendsv1.EffectClass) {
	s.t.Helper()
	if len(res.GetRefunds()) != len(want) {
		s.t.Fatalf("%s: %v, want %v", what, res.GetRefunds(), want)
	}
	for i, c := range want {
		if o := res.GetRefunds()[i].GetOutcome(); o.GetClass() != c || (o.GetRefundId() != "") != (c == acknowledged) {
			s.t.Errorf("%s: refund %d is %v, want %v", what, i, o, c)
		}
	}
}

// A withdrawal of an action that was made in part withdraws the rest, and says
// which is which; an older delivery of the action begins nothing after it.
func TestAWithdrawalInPartLeavesNoKeyOpenMONEY3TRUTH1(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task := s.pair(providertest.None)
	for range 2 {
		res := s.ask(withdraw(task.GetExecute().GetAction()))
		s.want("withdrawn", res, refused, ledger.ReasonWithdrawnInPart)
		s.each("withdrawn", res, acknowledged, notBegun)
		res = s.ask(task)
		s.want("an older delivery", res, refused, ledger.ReasonWithdrawnInPart)
		s.each("an older delivery", res, acknowledged, notBegun)
	}
	res := s.ask(confirms(task.GetExecute().GetAction()))
	s.each("confirmed", res, acknowledged, notBegun)
	s.count(1)
}

// In doubt and withdrawn in part: what is in doubt is looked up and not sent
// again, not even by an older delivery, and the rest is withdrawn at once.
func TestADoubtThatIsWithdrawnInPartIsNotSentAgainMONEY3(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  providertest.Fault
		class  amendsv1.EffectClass
		reason string
	}{
		"made":     {providertest.Late, refused, ledger.ReasonWithdrawnInPart},
		"not made": {providertest.LostBefore, notBegun, ledger.ReasonCancelled},
	} {
		s := alone(t, keeps)
		task := s.pair(c.fault)
		off := withdraw(task.GetExecute().GetAction())
		res := s.ask(off)
		s.each(name+", withdrawn", res, unknown, notBegun)
		if res.GetClass() != unknown {
			t.Errorf("%s: withdrawn as %v", name, res.GetClass())
		}
		s.want(name+", an older delivery", s.ask(task), undecidable, ledger.ReasonWithdrawnInPart)
		s.calls(0)
		s.books.Arrive()
		s.provable()
		s.want(name+", asked again", s.ask(off), c.class, c.reason)
		s.want(name+", an older delivery again", s.ask(task), c.class, c.reason)
		if n := len(s.refunds()); (n == 1) != (c.class == refused) {
			t.Errorf("%s: %d refunds", name, n)
		}
	}
}

// A refund that comes to be after all, of a key that was proven to have done
// nothing, is found by whoever asks: a confirmation, and a withdrawal before it
// withdraws anything.
func TestWhatWasThoughtIdleIsFoundTRUTH1(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*amendsv1.ActionRecord) *amendsv1.TaskAssign{
		"confirm": func(a *amendsv1.ActionRecord) *amendsv1.TaskAssign { return confirms(a) }, "withdraw": withdraw,
	} {
		s := alone(t, noKeys)
		task := s.doubt(providertest.Late)
		s.provable()
		s.want(name+": proven", s.ask(task), noEffect, ledger.ReasonProvenAbsent)
		s.books.Arrive()
		a := task.GetExecute().GetAction()
		s.want(name, s.ask(ask(a)), acknowledged, "")
		s.want(name+", then withdrawn", s.ask(withdraw(a)), acknowledged, "")
		s.count(1)
	}
}

// An outage does not hold up the withdrawal of what provably did nothing.
func TestAWithdrawalNeedsNoReadingOfWhatIsIdle(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task := s.execute(s.action(1))
	s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.Busy })
	s.want("turned away", s.ask(task), noEffect, "http_429")
	s.books.SetOutage(func(string) error { return errDown })
	s.want("withdrawn", s.ask(withdraw(task.GetExecute().GetAction())), notBegun, ledger.ReasonCancelled)
	s.want("an older delivery", s.ask(task), notBegun, ledger.ReasonCancelled)
}

// What a custodian settled not to exist is over: an older delivery of the action
// begins nothing, whatever came after. A newer proposal may.
func TestWhatIsSettledToBeNoneIsOverMONEY3(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]providertest.Fault{"in doubt": providertest.LostBefore, "thought to have done nothing": providertest.Busy} {
		s := alone(t, keeps)
		task := s.execute(s.action(1))
		a := task.GetExecute().GetAction()
		s.books.SetFault(func(providertest.Call) providertest.Fault { return f })
		s.ask(task)
		s.books.SetFault(nil)
		s.provable()
		for range 2 {
			res := s.ask(s.settles(a, ""))
			s.want(name+", settled", res, refused, ledger.ReasonSettledAbsent)
			if o := res.GetRefunds()[0].GetOutcome(); o.GetSettledBy() != "maya" || o.GetReason() != ledger.ReasonSettledAbsent {
				t.Errorf("%s: outcome %v", name, o)
			}
			s.want(name+", an older delivery", s.ask(task), refused, ledger.ReasonSettledAbsent)
			s.stop(true)
			s.want(name+", stopped", s.ask(task), refused, ledger.ReasonSettledAbsent)
			s.stop(false)
		}
		s.count(0)

		newer := s.execute(s.action(2))
		s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.Busy })
		s.want(name+", a newer proposal turned away", s.ask(newer), noEffect, "http_429")
		s.books.SetFault(nil)
		s.want(name+", the older one after it", s.ask(task), refused, ledger.ReasonSettledAbsent)
		s.count(0)
		s.want(name+", the newer proposal", s.ask(newer), acknowledged, "")
		s.count(1)
	}
}

// A refund that exists is found also after a custodian said that there is none.
func TestASettledAbsenceIsNoProofTRUTH1(t *testing.T) {
	t.Parallel()
	s := alone(t, noKeys)
	task := s.doubt(providertest.Late)
	s.provable()
	s.want("settled", s.ask(s.settles(task.GetExecute().GetAction(), "")), refused, ledger.ReasonSettledAbsent)
	s.books.Arrive()
	s.want("and there", s.ask(task), acknowledged, "")
	s.count(1)
}

// Nothing was ever begun, and the case does not know: a custodian's signed word
// that there is none ends it, and withdraws the keys. It has to be so.
func TestNothingBegunIsSettledToBeNoneTRUTH1(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	a := s.action(1)
	task := s.execute(a)
	s.want("by a refund that is not ours", s.ask(s.settles(a, s.byHand("_a", "", 200000))), undecidable, ledger.ReasonNothingBegun)
	for range 2 {
		res := s.ask(s.settles(a, ""))
		s.want("none", res, refused, ledger.ReasonSettledAbsent)
		s.each("none", res, refused)
		if o := res.GetRefunds()[0].GetOutcome(); o.GetSettledBy() != "maya" {
			t.Errorf("outcome %v", o)
		}
		s.want("an older delivery", s.ask(task), refused, ledger.ReasonSettledAbsent)
		s.want("withdrawn", s.ask(withdraw(a)), refused, ledger.ReasonSettledAbsent)
	}
	e, _, _, err := s.store.Entry(t.Context(), firm, theirs)
	if err != nil || len(e.GetIntents()) != 0 || len(e.GetTombstones()) != 1 || e.GetTombstones()[0].GetSettledBy() != "maya" {
		t.Errorf("entry %v, %v", e, err)
	}
	s.calls(0)

	s = alone(t, keeps)
	a = s.action(1)
	s.byHand("_b", ourKey, 200000)
	s.want("but one bears our key", s.ask(s.settles(a, "")), undecidable, ledger.ReasonSettleExists)
	s.registry.Approvers = nil
	s.want("by nobody we know", s.ask(s.settles(a, "")), undecidable, approval.ReasonUnknownApprover)
	if e, _, _, err := s.store.Entry(t.Context(), firm, theirs); e != nil || err != nil {
		t.Errorf("entry %v, %v", e, err)
	}
}
