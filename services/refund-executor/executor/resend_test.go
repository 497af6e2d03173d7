package executor

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

// The provider remembers a key from its first use: a beginning of yesterday that
// came to nothing does not make the key younger (B04).
func TestAKeyIsAsOldAsItsFirstCallB04MONEY1(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.Busy })
	s.want("turned away", s.ask(s.execute(s.action(1))), noEffect, "http_429")
	first := s.clock
	s.clock = s.clock.Add(23 * time.Hour)
	s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.LostBefore })
	task := s.execute(s.action(2))
	s.want("begun again", s.ask(task), unknown, "connection_lost")
	s.books.SetFault(nil)
	if in := s.intent(); in.GetFirstBegunAt().AsTime().After(first) || !in.GetBegunAt().AsTime().After(first) {
		t.Errorf("intent %v, first begun before %s", in, first)
	}
	s.clock = s.clock.Add(2 * time.Hour)
	s.want("25 h after the first call", s.ask(task), noEffect, ledger.ReasonProvenAbsent)
	s.calls(0)
}

// A clock that is ahead makes a key no younger either: its age is the broker's.
func TestAKeysAgeIsTheBrokersMONEY1(t *testing.T) {
	t.Parallel()
	ahead := 20 * time.Minute
	var s *solo
	s = alone(t, keeps, func(_ *Config, p *parts) {
		p.now = func() time.Time { return s.clock.Add(ahead) }
		p.provider = ownClock{p.provider, func() time.Duration { return ahead }}
	})
	half := s.action(1)
	half.Refunds[0].Amount = money.New(100000, "INR") // the capture has room for two
	task := s.execute(half)
	s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.LostAfter })
	s.want("made, and nobody knows", s.ask(task), unknown, "connection_lost")
	s.books.SetFault(nil)
	ahead, s.clock = 0, s.clock.Add(24*time.Hour+10*time.Minute)
	s.want("when the key is forgotten", s.ask(task), acknowledged, "")
	s.calls(1)
	s.count(1)
}

// What people approved stays approved while it is in doubt: goodwill below the
// total is sent again under its key, also when the approval has expired since.
// What nobody approved is not.
func TestGoodwillInDoubtIsSentAgainMONEY4(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{"at once": 0, "after the approval has expired": time.Hour} {
		s := alone(t, keeps)
		a := s.action(1)
		a.Refunds = nil
		for _, p := range []string{"pay_8472_a", "pay_8472_b"} {
			a.Refunds = append(a.Refunds, &amendsv1.ActionRefund{PaymentId: p, Amount: money.New(200000, "INR"), Kind: approval.KindGoodwill, IdempotencyKey: approval.Key("req-8472", p)})
		}
		task := s.execute(a)
		s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.LostBefore })
		s.want(name+", lost", s.ask(task), unknown, "connection_lost")
		s.books.SetFault(nil)
		s.clock = s.clock.Add(later)
		s.want(name, s.ask(task), acknowledged, "")
		s.count(2)
	}

	s := alone(t, keeps)
	a := s.action(1)
	a.Refunds[0].Amount, a.Refunds[0].Kind = money.New(50000, "INR"), approval.KindGoodwill
	task := s.execute(a)
	task.GetExecute().Approvals = nil
	s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.LostBefore })
	s.want("an excess under that name, by nobody, lost", s.ask(task), unknown, "connection_lost")
	s.books.SetFault(nil)
	s.byHand("_a", "", 200000)
	s.want("when it would go below the total", s.ask(task), undecidable, ledger.ReasonNotOverpaid)
	s.calls(0)
}
