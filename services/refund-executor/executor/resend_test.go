package executor

import (
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/money"
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
