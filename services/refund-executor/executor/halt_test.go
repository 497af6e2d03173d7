package executor

import (
	"context"
	"testing"
	"time"

	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

// A look at the stop switches permits a call for a second. One that has not left
// by then is withdrawn, and the next look sees the stop.
func TestNoCallLeavesASecondAfterTheStop(t *testing.T) {
	t.Parallel()
	for stood, calls := range map[time.Duration]int{
		stopHolds - time.Nanosecond: 1, stopHolds: 0, 20 * time.Second: 0, time.Minute: 0,
	} {
		looks := 0
		var s *solo
		s = alone(t, keeps, func(_ *Config, p *parts) {
			p.reached = func(_ context.Context, st Step, _ string) error {
				if st == StopLookedAt {
					looks++
					s.stop(true)                 // amends stop has returned
					s.clock = s.clock.Add(stood) // and the process stood still
				}
				return nil
			}
		})
		task := s.execute(s.action(1))
		res := s.ask(task)
		s.calls(calls)
		if calls == 0 {
			s.want(stood.String(), res, held, reasonStopped)
			if in := s.intent(); in.GetVoidCalls() != in.GetCalls() {
				t.Errorf("%s: nothing was sent, and the intent is %v", stood, in)
			}
		}
		if looks != 1 {
			t.Errorf("%s: called after %d looks", stood, looks)
		}
	}
}

// Each try has a look of its own: a call that the provider turns away is not
// made again on the first one.
func TestEveryTryLooksAtTheStop(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	tries := 0
	s.books.SetFault(func(providertest.Call) providertest.Fault {
		tries++
		s.stop(true)
		return providertest.Busy
	})
	s.want("stopped between two tries", s.ask(s.execute(s.action(1))), held, reasonStopped)
	if tries != 1 {
		t.Errorf("%d tries", tries)
	}
}
