package executor

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

// slow is another executor on the same records and provider, whose clock is
// behind the broker's.
func (s *solo) slow(by time.Duration, edit ...func(*parts)) *executor {
	p := s.executor.parts
	p.now = func() time.Time { return s.clock.Add(-by) }
	p.provider = ownClock{p.provider, func() time.Duration { return -by }}
	for _, e := range edit {
		e(&p)
	}
	return assemble(s.cfg, p)
}

// ownClock judges a call's last moment by the caller's clock, as the client does.
type ownClock struct {
	provider.Provider
	ahead func() time.Duration
}

func (o ownClock) Create(ctx context.Context, key string, body []byte, notAfter time.Time) provider.Outcome {
	return o.Provider.Create(ctx, key, body, notAfter.Add(-o.ahead()))
}

// stale is a store whose clock says what the last task did: nothing tells an
// executor on it that its own clock is behind.
type stale struct {
	effectstore.Store
	at time.Time
}

func (s stale) Time(context.Context) (time.Time, error) { return s.at, nil }

// by lets an executor work on a task that the broker had at a moment.
func (s *solo) by(x *executor, task *amendsv1.TaskAssign, had time.Time) (*amendsv1.EffectResult, error) {
	s.t.Helper()
	task = proto.CloneOf(task)
	task.Contract.Expires = timestamppb.New(had.Add(time.Hour))
	checked, reason, err := read(&bus.Message{
		Envelope: &amendsv1.Envelope{MessageId: ident.Derive(had, "task"), CaseId: "req-8472", Tenant: firm, CustomerId: "cust_5519"},
		Payload:  task, Parts: subject.Parts{Tenant: firm, CaseID: "req-8472"}, Stored: bus.Stored{Time: had},
	})
	if err != nil {
		s.t.Fatalf("%s: %v", reason, err)
	}
	return x.act(s.t.Context(), checked)
}

// An old task says nothing of the time it is now; the broker's clock does. One
// that is behind it begins nothing.
func TestASlowClockBeginsNothingAlsoOnAnOldTaskMONEY1(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task, had := s.execute(s.action(1)), s.clock
	s.clock = s.clock.Add(2*time.Minute + 30*time.Second) // a late delivery
	if res, err := s.by(s.slow(2*time.Minute), task, had); err == nil {
		t.Errorf("answered %v", res)
	}
	s.calls(0)
	res, err := s.by(s.executor, task, had)
	if err != nil {
		t.Fatal(err)
	}
	s.want("by a clock that is right", res, acknowledged, "")
}

// A slow clock that nothing shows writes a call window which is over before it
// begins. The call is under way all the same: absence counts from when the
// broker had the intent.
func TestAbsenceIsNotProvenByASlowClocksWordMONEY1MONEY3(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		promises provider.Promises
		cancels  bool
	}{
		"asked again": {noKeys, false}, "withdrawn": {keeps, true},
	} {
		s := alone(t, c.promises)
		had := s.clock
		slow := s.slow(2*time.Minute, func(p *parts) { p.store = stale{p.store, had} })
		half := s.action(1)
		half.Refunds[0].Amount = money.New(100000, "INR") // the capture has room for two
		task := s.execute(half)
		s.clock = s.clock.Add(2*time.Minute + 30*time.Second)
		s.books.SetFault(func(providertest.Call) providertest.Fault { return providertest.Late })
		if res, err := s.by(slow, task, had); err != nil || res.GetClass() != unknown {
			t.Fatalf("%s: not in doubt: %v, %v", name, res, err)
		}
		s.books.SetFault(nil)
		if before := s.intent().GetCallBefore().AsTime(); !before.Before(s.clock.Add(-time.Minute)) {
			t.Fatalf("%s: the window is open until %s", name, before)
		}
		if c.cancels {
			task = withdraw(half)
		}
		for range 3 { // at once
			if res := s.ask(task); res.GetClass() != unknown && res.GetClass() != undecidable {
				t.Errorf("%s: %v %s", name, res.GetClass(), res.GetReason())
			}
		}
		s.books.Arrive()
		s.want(name+", and there it is", s.ask(task), acknowledged, "")
		s.count(1)
	}
}
