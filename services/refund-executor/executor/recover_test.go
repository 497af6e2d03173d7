package executor

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

// B04: the provider has forgotten the key after 25 h. What there is is looked
// up first: a refund that was made is found, and no second one is asked for.
func TestAForgottenKeyIsLookedUpFirstB04(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task := s.doubt(providertest.LostAfter)
	s.clock = s.clock.Add(25 * time.Hour)
	res := s.ask(task)
	s.want("25 h later", res, acknowledged, "")
	if o := res.GetRefunds()[0]; o.GetOutcome().GetRefundId() != "rf_5521" || o.GetReadBack().GetReference() != ourKey {
		t.Errorf("found %v", o)
	}
	s.want("again", s.ask(task), acknowledged, "")
	s.calls(1)
	s.count(1)
}

// B04, the other way: nothing was made. That is proven and told; the key may be
// begun again, under checks that are of now: the old approval has expired.
func TestAProvenAbsenceLetsTheKeyBeginAgainB04MONEY2(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task := s.doubt(providertest.LostBefore)
	s.clock = s.clock.Add(25 * time.Hour)
	s.want("25 h later", s.ask(task), noEffect, ledger.ReasonProvenAbsent)
	s.want("with the old approval", s.ask(task), refused, "approval_expired")
	s.count(0)
	s.want("proposed and approved anew", s.ask(s.execute(s.action(2))), acknowledged, "")
	s.calls(1)
	s.count(1)
	if in := s.intent(); in.GetCalls() != 2 || in.GetOutcome().GetRefundId() == "" {
		t.Errorf("intent %v", in)
	}
}

// Absence is proven only by a listing made when the last permitted call and its
// time-out are over, by any executor's clock. A call that is still under way
// arrives, and is found.
func TestAbsenceIsProvenOnlyWhenNoCallCanBeUnderWayMONEY1(t *testing.T) {
	t.Parallel()
	s := alone(t, noKeys)
	task := s.doubt(providertest.Late)
	end := s.intent().GetCallBefore().AsTime().Add(noKeys.CallTimeout + ledger.ClockMargin)
	for _, at := range []time.Time{s.clock, end.Add(-time.Second), end.Add(-time.Nanosecond)} {
		s.clock = at
		s.want("too early to tell", s.ask(task), undecidable, reasonNoKeys)
		if o := s.intent().GetOutcome(); o.GetClass() != unknown {
			t.Errorf("recorded %v", o)
		}
	}
	s.books.Arrive()
	s.clock = end
	s.want("it arrived", s.ask(task), acknowledged, "")
	s.calls(1)
	s.count(1)

	s = alone(t, noKeys)
	task = s.doubt(providertest.LostBefore)
	s.clock = end
	s.want("it never will", s.ask(task), noEffect, ledger.ReasonProvenAbsent)
}

// A provider that breaks its promise makes the refund after its absence was
// proven: it is found all the same, and not made twice.
func TestARefundThatComesTooLateIsFoundMONEY1(t *testing.T) {
	t.Parallel()
	s := alone(t, noKeys)
	task := s.doubt(providertest.Late)
	s.provable()
	s.want("proven absent", s.ask(task), noEffect, ledger.ReasonProvenAbsent)
	s.books.Arrive()
	s.want("and there", s.ask(task), acknowledged, "")
	s.calls(1)
	s.count(1)
}

// While the key is known the same bytes are sent again; with a stop set or on
// a cancel nothing is, and what the provider shows decides.
func TestADoubtIsResentLookedUpOrWithdrawn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault         providertest.Fault
		stop, cancels bool
		later         time.Duration
		want          amendsv1.EffectClass
		reason        string
		calls         int
	}{
		"made, asked again":                     {providertest.LostAfter, false, false, 0, acknowledged, "", 2},
		"not made, asked again":                 {providertest.LostBefore, false, false, 0, acknowledged, "", 1},
		"made, stopped":                         {providertest.LostAfter, true, false, 0, acknowledged, "", 1},
		"not made, stopped":                     {providertest.LostBefore, true, false, 0, held, reasonStopped, 0},
		"not made, stopped, provable":           {providertest.LostBefore, true, false, time.Minute, held, reasonStopped, 0},
		"made, cancelled":                       {providertest.LostAfter, false, true, 0, acknowledged, "", 1},
		"made, cancelled while stopped":         {providertest.LostAfter, true, true, 0, acknowledged, "", 1},
		"not made, cancelled too early to tell": {providertest.LostBefore, false, true, 0, unknown, "connection_lost", 0},
		"not made, cancelled, provable":         {providertest.LostBefore, false, true, time.Minute, notBegun, ledger.ReasonCancelled, 0},
		"made, the action has expired":          {providertest.LostAfter, false, false, time.Hour, acknowledged, "", 2},
		"made, expired and cancelled":           {providertest.LostAfter, false, true, time.Hour, acknowledged, "", 1},
	} {
		s := alone(t, keeps)
		task := s.doubt(c.fault)
		s.stop(c.stop)
		s.clock = s.clock.Add(c.later)
		if c.cancels {
			task = withdraw(task.GetExecute().GetAction())
		}
		s.want(name, s.ask(task), c.want, c.reason)
		s.want(name+", once more", s.ask(task), c.want, c.reason)
		s.calls(c.calls)
		if c.want == notBegun {
			s.want(name+", then executed", s.ask(s.execute(s.action(1))), notBegun, ledger.ReasonCancelled)
			s.count(0)
		}
	}
}

// What the provider shows does not always tell: then nothing is called, nothing
// is recorded, and a person gets it with the reason.
func TestWhatALookUpCannotTellIsAPersonsMatter(t *testing.T) {
	t.Parallel()
	order := func(edit func(o *provider.Order)) func(*solo) {
		return func(s *solo) {
			o, err := s.books.ReadOrder(s.t.Context(), firm, theirs)
			if err != nil {
				s.t.Fatal(err)
			}
			edit(&o)
			s.books.Load(firm, o)
		}
	}
	refund := func(id, payment, reference string, minor int64, st amendsv1.RefundStatus) func(*solo) {
		return order(func(o *provider.Order) {
			o.Refunds = append(o.Refunds, &amendsv1.Refund{RefundId: id, PaymentId: payment, Reference: reference, Amount: money.New(minor, "INR"), Status: st})
		})
	}
	const pending, failed = amendsv1.RefundStatus_REFUND_STATUS_PENDING, amendsv1.RefundStatus_REFUND_STATUS_FAILED
	for name, c := range map[string]struct {
		happens func(*solo)
		class   amendsv1.EffectClass
		reason  string
	}{
		"equal, without our reference":        {refund("rf_1", "pay_8472_b", "", 200000, pending), undecidable, ledger.ReasonEqualRefund},
		"equal, somebody else's reference":    {refund("rf_1", "pay_8472_b", "dashboard", 200000, pending), undecidable, ledger.ReasonEqualRefund},
		"equal, but failed":                   {refund("rf_1", "pay_8472_b", "", 200000, failed), noEffect, ledger.ReasonProvenAbsent},
		"equal, on the other payment":         {refund("rf_1", "pay_8472_a", "", 200000, pending), noEffect, ledger.ReasonProvenAbsent},
		"less, on the same payment":           {refund("rf_1", "pay_8472_b", "", 199999, pending), noEffect, ledger.ReasonProvenAbsent},
		"our reference, another amount":       {refund("rf_1", "pay_8472_b", ourKey, 1, pending), undecidable, ledger.ReasonContradictory},
		"our reference, another payment":      {refund("rf_1", "pay_8472_a", ourKey, 200000, pending), undecidable, ledger.ReasonContradictory},
		"a status from the future, ours":      {refund("rf_1", "pay_8472_b", ourKey, 200000, amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN), acknowledged, ""},
		"a status from the future, elsewhere": {refund("rf_1", "pay_8472_a", "", 5, amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN), undecidable, ledger.ReasonContradictory},
		"ours, failed":                        {refund("rf_1", "pay_8472_b", ourKey, 200000, failed), refused, ledger.ReasonProviderFailed},
		"ours, beside a contradiction": {func(s *solo) {
			refund("rf_1", "pay_8472_b", ourKey, 200000, pending)(s)
			refund("rf_2", "pay_gone", "", 1, pending)(s)
		}, acknowledged, ""},
		"two of ours": {func(s *solo) {
			refund("rf_1", "pay_8472_b", ourKey, 200000, pending)(s)
			refund("rf_2", "pay_8472_b", ourKey, 200000, failed)(s)
		}, undecidable, ledger.ReasonContradictory},
		"a capture that contradicts itself":      {order(func(o *provider.Order) { o.Captures[0].Settled = false }), undecidable, ledger.ReasonContradictory},
		"a refund on a payment that is not here": {refund("rf_1", "pay_gone", "", 1, pending), undecidable, ledger.ReasonContradictory},
	} {
		s := alone(t, keeps)
		task := s.doubt(providertest.LostBefore)
		s.clock = s.clock.Add(25 * time.Hour)
		c.happens(s)
		s.want(name, s.ask(task), c.class, c.reason)
		if o := s.intent().GetOutcome(); c.class == undecidable && o.GetClass() != unknown {
			t.Errorf("%s: recorded %v", name, o)
		}
		if c.class == undecidable {
			s.want(name+", cancelled", s.ask(withdraw(task.GetExecute().GetAction())), undecidable, c.reason)
		}
		s.calls(0)
	}
}

// B18: what was done in the dashboard meanwhile forbids the resend; whether the
// first call made its refund is looked up.
func TestAnOrderThatWouldNotCarryTheResendIsLookedUpB18(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  providertest.Fault
		later  time.Duration
		want   amendsv1.EffectClass
		reason string
		calls  int
	}{
		"made":                   {providertest.LostAfter, 0, acknowledged, "", 1},
		"not made, too early":    {providertest.LostBefore, 0, undecidable, ledger.ReasonNotOverpaid, 0},
		"not made, and provable": {providertest.LostBefore, time.Minute, noEffect, ledger.ReasonProvenAbsent, 0},
	} {
		s := alone(t, keeps)
		task := s.doubt(c.fault)
		s.byHand("_a", "", 200000)
		s.clock = s.clock.Add(c.later)
		s.want(name, s.ask(task), c.want, c.reason)
		s.calls(c.calls)
		if c.want == noEffect {
			s.want(name+", begun again", s.ask(task), refused, ledger.ReasonNotOverpaid)
		}
	}
}

// A provider that cannot be read holds nothing up that needs no reading, and
// decides nothing: the task is tried again.
func TestAPartialOutageDecidesNothing(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task := s.doubt(providertest.LostAfter)
	s.clock = s.clock.Add(25 * time.Hour)
	down := errors.New("down")
	s.books.SetOutage(func(string) error { return down })
	if res, err := s.try(task); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("answered %v, %v", res, err)
	}
	s.want("cancelled", s.ask(withdraw(task.GetExecute().GetAction())), unknown, "connection_lost")
	s.stop(true)
	s.want("stopped", s.ask(task), held, reasonStopped)
	s.stop(false)
	s.books.SetOutage(nil)
	s.want("back again", s.ask(task), acknowledged, "")
	s.books.SetOutage(func(string) error { return down })
	s.want("acknowledged without a reading", s.ask(task), acknowledged, "")
	s.calls(1)
}

// What a look-up settles is durable before it is told; a lost acknowledgement
// of that write, a lost race and a crash before it are decided again.
func TestALookUpIsDurableBeforeItIsToldTRUTH2(t *testing.T) {
	t.Parallel()
	crash := errors.New("crash")
	for _, f := range []providertest.Fault{providertest.LostAfter, providertest.LostBefore} {
		want := map[providertest.Fault]amendsv1.EffectClass{providertest.LostAfter: acknowledged, providertest.LostBefore: noEffect}[f]
		at := Step("")
		s := alone(t, keeps, func(_ *Config, p *parts) {
			p.reached = func(_ context.Context, step Step, _ string) error {
				if step == at {
					return crash
				}
				return nil
			}
		})
		task := s.doubt(f)
		s.clock = s.clock.Add(25 * time.Hour)
		before := s.intent()
		at = LookedUp
		if res, err := s.try(task); !errors.Is(err, crash) {
			t.Errorf("answered %v, %v", res, err)
		}
		if !proto.Equal(before, s.intent()) {
			t.Error("something was recorded")
		}
		at = ""
		struck := 0
		s.fault = func(op effectstore.Op, _ string) error {
			if op == effectstore.OpAck {
				if struck++; struck == 1 {
					return crash
				}
			}
			return nil
		}
		res, err := s.try(task)
		if f == providertest.LostBefore { // the leader's copy says Idle: begun again, with an approval of yesterday
			s.want("acknowledgement lost", res, refused, "approval_expired")
		} else {
			s.want("acknowledgement lost", res, want, "")
		}
		if err != nil || struck == 0 || s.intent().GetOutcome().GetClass() != want {
			t.Errorf("struck %d times, outcome %v, %v", struck, s.intent().GetOutcome(), err)
		}
	}
}

// A process that stands still between the permission to call and the sending
// sends nothing, and what it had begun is provably undone (MONEY-2).
func TestAProcessThatStoodStillSendsNothingMONEY2(t *testing.T) {
	t.Parallel()
	var s *solo
	s = alone(t, keeps, func(_ *Config, p *parts) {
		p.provider = still{p.provider, func() { s.clock = s.clock.Add(time.Minute) }}
	})
	task := s.execute(s.action(1))
	s.want("stood still", s.ask(task), noEffect, reasonCallWindow)
	s.calls(0)
	if in := s.intent(); in.GetVoidCalls() != in.GetCalls() {
		t.Errorf("intent %v", in)
	}
	s.want("cancelled", s.ask(withdraw(task.GetExecute().GetAction())), notBegun, ledger.ReasonCancelled)
}

// still lets a minute pass between the permission to call and the call.
type still struct {
	provider.Provider
	pass func()
}

func (s still) Create(ctx context.Context, key string, body []byte, notAfter time.Time) provider.Outcome {
	s.pass()
	return s.Provider.Create(ctx, key, body, notAfter)
}

// What was judged before a process stood still is judged again before its
// intent is written: an approval that expired meanwhile moves nothing, whatever
// became of the acknowledgement.
func TestAnIntentIsWrittenInTimeMONEY2(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task := s.execute(s.action(1))
	stood := false
	s.fault = func(op effectstore.Op, _ string) error {
		switch {
		case op == effectstore.OpWrite && !stood:
			stood, s.clock = true, s.clock.Add(31*time.Minute)
		case op == effectstore.OpAck:
			return errors.New("no acknowledgement")
		}
		return nil
	}
	s.want("after half an hour", s.ask(task), refused, "approval_expired")
	s.calls(0)
	s.count(0)
}

// An acknowledged refund that the provider does not show keeps the case open.
func TestARefundThatIsNotThereIsAGap(t *testing.T) {
	t.Parallel()
	s := alone(t, keeps)
	task := s.execute(s.action(1))
	s.want("made", s.ask(task), acknowledged, "")
	s.books.Load(firm, providertest.Paid(theirs, money.New(200000, "INR"), 2, s.clock))
	s.want("gone", s.ask(task), evidenceGap, reasonNotShown)
}

// Absence is judged by the broker's time of the task, not by a clock of our own
// that may run ahead; and a process whose clock is behind begins nothing, for
// its call window would stay open longer than others think (MONEY-1).
func TestAClockOfItsOwnProvesNothingMONEY1(t *testing.T) {
	t.Parallel()
	skew := time.Duration(0)
	var s *solo
	s = alone(t, noKeys, func(_ *Config, p *parts) { p.now = func() time.Time { return s.clock.Add(skew) } })
	task := s.doubt(providertest.Late)
	skew = time.Hour
	s.want("ahead", s.ask(task), undecidable, reasonNoKeys)
	s.books.Arrive()
	s.want("and there it is", s.ask(task), acknowledged, "")
	s.calls(1)

	s = alone(t, keeps, func(_ *Config, p *parts) {
		p.now = func() time.Time { return s.clock.Add(skew) }
		p.provider = ownClock{p.provider, func() time.Duration { return skew }}
	})
	skew = -ledger.ClockMargin - time.Second
	if res, err := s.try(s.execute(s.action(1))); err == nil {
		t.Errorf("behind: %v", res)
	}
	s.calls(0)
	skew = -ledger.ClockMargin
	s.want("nearly right", s.ask(s.execute(s.action(1))), acknowledged, "")
}
