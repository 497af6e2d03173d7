package casefile_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/casefile"
)

var received = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

func TestParseWhen(t *testing.T) {
	t.Parallel()
	state := func(s ...string) casefile.When { return casefile.When{States: s} }
	after := func(d time.Duration, s ...string) casefile.When {
		return casefile.When{States: s, After: true, Delay: d}
	}
	for text, want := range map[string]casefile.When{
		"":                                          {},
		"immediately":                               {},
		"state == AWAITING_APPROVAL":                state("AWAITING_APPROVAL"),
		"state=AWAITING_APPROVAL":                   state("AWAITING_APPROVAL"),
		"AWAITING_APPROVAL":                         state("AWAITING_APPROVAL"),
		"on HOLD_FOR_EVIDENCE":                      state("HOLD_FOR_EVIDENCE"),
		"while it is on hold":                       state("HOLD_FOR_EVIDENCE"),
		"while awaiting approval":                   state("AWAITING_APPROVAL"),
		"before the approval":                       {States: []string{"AWAITING_APPROVAL"}, Before: true},
		"while the approval is pending":             state("AWAITING_APPROVAL"),
		"when the state is AWAITING_CUSTOMER":       state("AWAITING_CUSTOMER"),
		"AWAITING_APPROVAL or HOLD_FOR_EVIDENCE":    state("AWAITING_APPROVAL", "HOLD_FOR_EVIDENCE"),
		"during INVESTIGATING":                      state("INVESTIGATING"),
		"state == REFUND_REQUESTED":                 state("REFUND_REQUESTED"),
		"after CANCELLED":                           after(0, "CANCELLED"),
		"once the case is closed":                   after(0, "VERIFIED_CLOSED"),
		"after VERIFIED_CLOSED":                     after(0, "VERIFIED_CLOSED"),
		"after the approval":                        after(0, "REFUND_REQUESTED"),
		"after the refund":                          after(0, "REFUNDED"),
		"after the withdrawal":                      after(0, "CANCELLED"),
		"31 minutes after AWAITING_APPROVAL":        after(31*time.Minute, "AWAITING_APPROVAL"),
		"state == AWAITING_APPROVAL, 29 min later":  after(29*time.Minute, "AWAITING_APPROVAL"),
		"AWAITING_APPROVAL + 10m":                   {States: []string{"AWAITING_APPROVAL"}, Delay: 10 * time.Minute},
		"second AWAITING_APPROVAL":                  {States: []string{"AWAITING_APPROVAL"}, Nth: 2},
		"state == AWAITING_APPROVAL again":          {States: []string{"AWAITING_APPROVAL"}, Nth: 2},
		"on the second proposal":                    {States: []string{"AWAITING_APPROVAL"}, Nth: 2},
		"+31m":                                      {Delay: 31 * time.Minute},
		"+ 4 h":                                     {Delay: 4 * time.Hour},
		"2 hours later":                             {Delay: 2 * time.Hour, After: true},
		"after 3 days":                              {Delay: 72 * time.Hour, After: true},
		"1h 30m later":                              {Delay: 90 * time.Minute, After: true},
		"half an hour later":                        {Delay: 30 * time.Minute, After: true},
		"a day later":                               {Delay: 24 * time.Hour, After: true},
		"PT31M":                                     {Delay: 31 * time.Minute},
		"after P3D":                                 {Delay: 72 * time.Hour, After: true},
		"4 hours after receipt":                     {Delay: 4 * time.Hour, After: true, FromReceipt: true},
		"after the approval expires":                {Event: casefile.EventExpiry, After: true},
		"when the approval has expired":             {Event: casefile.EventExpiry},
		"just before the approval expires":          {Event: casefile.EventExpiry, Before: true},
		"1 minute before expiry":                    {Event: casefile.EventExpiry, Before: true, Delay: time.Minute},
		"after the recheck":                         {Event: casefile.EventRecheck, After: true},
		"before the recheck":                        {Event: casefile.EventRecheck, Before: true},
		"after the first reply":                     {Event: casefile.EventReply, Nth: 1, After: true},
		"2026-03-12T10:45:00Z":                      {At: time.Date(2026, 3, 12, 10, 45, 0, 0, time.UTC)},
		"at 2026-03-12T16:15:00+05:30":              {At: time.Date(2026, 3, 12, 10, 45, 0, 0, time.UTC)},
		"2026-03-12 10:45":                          {At: time.Date(2026, 3, 12, 10, 45, 0, 0, time.UTC)},
		"AWAITING_APPROVAL at 2026-03-12T10:43:59Z": {States: []string{"AWAITING_APPROVAL"}, At: time.Date(2026, 3, 12, 10, 43, 59, 0, time.UTC)},
	} {
		got, err := casefile.ParseWhen(text, received)
		want.Text = text
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %#v (%v), want %#v", text, got, err, want)
		}
	}
}

// Durations and moments as people write them.
func TestMomentsInPlainWords(t *testing.T) {
	t.Parallel()
	after := func(d time.Duration, s ...string) casefile.When {
		return casefile.When{States: s, After: true, Delay: d}
	}
	state := func(s ...string) casefile.When { return casefile.When{States: s} }
	clock := func(days int, of time.Duration) casefile.When {
		return casefile.When{Clock: &casefile.Clock{Days: days, Of: of}}
	}
	for text, want := range map[string]casefile.When{
		"71h59m after AWAITING_CUSTOMER":                            after(71*time.Hour+59*time.Minute, "AWAITING_CUSTOMER"),
		"1h30 after AWAITING_APPROVAL":                              after(90*time.Minute, "AWAITING_APPROVAL"),
		"1d2h3m4s later":                                            after(26*time.Hour + 3*time.Minute + 4*time.Second),
		"2 hours and 15 minutes later":                              after(135 * time.Minute),
		"a quarter of an hour after the approval was requested":     after(15*time.Minute, "AWAITING_APPROVAL"),
		"quarter of an hour later":                                  after(15 * time.Minute),
		"three quarters of an hour later":                           after(45 * time.Minute),
		"half an hour after AWAITING_APPROVAL":                      after(30*time.Minute, "AWAITING_APPROVAL"),
		"half a day later":                                          after(12 * time.Hour),
		"a day and a half later":                                    after(36 * time.Hour),
		"an hour and a quarter later":                               after(75 * time.Minute),
		"two and a half hours later":                                after(150 * time.Minute),
		"twenty-nine minutes after the approval has been requested": after(29*time.Minute, "AWAITING_APPROVAL"),
		"seventy-two hours later":                                   after(72 * time.Hour),
		"a day, two hours and a minute later":                       after(26*time.Hour + time.Minute),
		"one hour and a half later":                                 after(90 * time.Minute),
		"once the customer has been asked":                          after(0, "AWAITING_CUSTOMER"),
		"when the customer was asked":                               state("AWAITING_CUSTOMER"),
		"when the hold is explained":                                state("HOLD_FOR_EVIDENCE"),
		"when the refund is proposed":                               state("AWAITING_APPROVAL"),
		"as soon as the action is shown to the approver":            state("AWAITING_APPROVAL"),
		"when it is shown":                                          state("AWAITING_APPROVAL"),
		"when the approver has been asked":                          state("AWAITING_APPROVAL"),
		"after the refund was requested":                            after(0, "REFUND_REQUESTED"),
		"when requested":                                            state("REFUND_REQUESTED"),
		"AWAITING_APPROVAL was entered and the action shown":        state("AWAITING_APPROVAL"),
		"after the approval was refused":                            after(0, "DECLINED"),
		"after it was rejected":                                     after(0, "DECLINED"),
		"after the refund was made":                                 after(0, "REFUNDED"),
		"after the refund has been approved":                        after(0, "REFUND_REQUESTED"),
		"after the customer was told":                               {Event: casefile.EventReply, After: true},
		"the next morning":                                          clock(1, 9*time.Hour),
		"next morning":                                              clock(1, 9*time.Hour),
		"the following afternoon":                                   clock(1, 15*time.Hour),
		"tomorrow morning":                                          clock(1, 9*time.Hour),
		"overnight":                                                 clock(1, 9*time.Hour),
		"the same evening":                                          clock(0, 18*time.Hour),
		"the next day at 14:30":                                     clock(1, 14*time.Hour+30*time.Minute),
		"tomorrow at 9 am":                                          clock(1, 9*time.Hour),
		"at 23:05":                                                  clock(0, 23*time.Hour+5*time.Minute),
		"the next day":                                              {Delay: 24 * time.Hour},
		"on the morning after AWAITING_APPROVAL": {
			States: []string{"AWAITING_APPROVAL"}, Clock: &casefile.Clock{Days: 1, Of: 9 * time.Hour},
		},
	} {
		got, err := casefile.ParseWhen(text, received)
		want.Text = text
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %#v (%v), want %#v", text, got, err, want)
		}
	}
}

// A time of day is that of the case's own zone, on the day counted from what it
// follows.
func TestTimesOfDay(t *testing.T) {
	t.Parallel()
	tokyo := time.Date(2026, 3, 12, 23, 30, 0, 0, time.FixedZone("", 9*3600))
	for _, tc := range []struct {
		when string
		now  time.Time
		want time.Time
	}{
		{"the next morning", received, time.Date(2026, 3, 13, 9, 0, 0, 0, time.UTC)},
		{"the same evening", received, time.Date(2026, 3, 12, 18, 0, 0, 0, time.UTC)},
		{"at 09:00", received, time.Date(2026, 3, 13, 9, 0, 0, 0, time.UTC)}, // 09:00 of that day is over
		{"the next morning", tokyo, time.Date(2026, 3, 13, 0, 0, 0, 0, time.UTC)},
	} {
		w, err := casefile.ParseWhen(tc.when, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Of(casefile.Situation{Received: tc.now, Now: tc.now, BeforeDone: true}); got.Due || !got.At.Equal(tc.want) {
			t.Errorf("%q from %v is %+v, want %v", tc.when, tc.now, got, tc.want)
		}
	}
}

// What is not understood is an error, never a guess.
func TestWhenNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"when pigs fly", "soon", "a quarter", "a quarter later", "explained", "the next full moon", "half past ten", "mornings", "25:00", "state != AWAITING_APPROVAL", "unless CANCELLED", "AWAITING_APPROVAL and it rains", "never",
		"2026-03-12T10:00:00Z", "before CANCELLED", "999999999 days later", "in", "+m", "2029-03-12T10:00:00Z",
	} {
		if w, err := casefile.ParseWhen(text, received); err == nil {
			t.Errorf("%q is read as %+v", text, w)
		} else if !strings.HasPrefix(err.Error(), "when: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// at gives a situation by minutes after receipt.
func at(now int, entered ...any) casefile.Situation {
	s := casefile.Situation{Received: received, Now: minute(now), BeforeDone: true}
	for i := 0; i < len(entered); i += 2 {
		state, _ := entered[i].(string)
		m, _ := entered[i+1].(int)
		s.Entered = append(s.Entered, casefile.Entered{State: state, At: minute(m)})
		s.States = []string{state}
	}
	return s
}

func minute(m int) time.Time { return received.Add(time.Duration(m) * time.Minute) }

func TestMoments(t *testing.T) {
	t.Parallel()
	const waiting, cancelled, looking = "AWAITING_APPROVAL", "CANCELLED", "INVESTIGATING"
	later := func(s casefile.Situation, change func(*casefile.Situation)) casefile.Situation {
		change(&s)
		return s
	}
	due, open := casefile.Verdict{Due: true}, casefile.Verdict{}
	for _, tc := range []struct {
		when string
		in   casefile.Situation
		want casefile.Verdict
	}{
		{"", at(0), due},
		{"", later(at(0), func(s *casefile.Situation) { s.BeforeDone = false }), open},
		{"state == AWAITING_APPROVAL", at(0, looking, 0), open},
		{"state == AWAITING_APPROVAL", at(0, looking, 0, waiting, 0), due},
		{"state == AWAITING_APPROVAL", at(1, waiting, 0, cancelled, 1), open},
		{"after AWAITING_APPROVAL", at(1, waiting, 0, cancelled, 1), due},
		{"after CANCELLED", at(1, waiting, 0), open},
		{"state == INVESTIGATING", at(0, looking, 0, waiting, 0), due}, // it was passed through
		{"second AWAITING_APPROVAL", at(1, waiting, 0, looking, 1), open},
		{"second AWAITING_APPROVAL", at(31, waiting, 0, looking, 31, waiting, 31), due},
		{"29 minutes after AWAITING_APPROVAL", at(5, waiting, 5), casefile.Verdict{At: minute(34)}},
		{"29 minutes after AWAITING_APPROVAL", at(34, waiting, 5), due},
		{"+31m", at(0, waiting, 2), casefile.Verdict{At: minute(31)}},
		{"+31m", at(31, waiting, 2), due},
		{"+31m", later(at(10, waiting, 2), func(s *casefile.Situation) { s.Before = minute(10) }), casefile.Verdict{At: minute(41)}},
		{"+31m", later(at(0), func(s *casefile.Situation) { s.ByApprover = true }), open},
		{"+31m", later(at(2, waiting, 2), func(s *casefile.Situation) { s.ByApprover = true }), casefile.Verdict{At: minute(33)}},
		{"4 hours after receipt", later(at(10), func(s *casefile.Situation) { s.Before = minute(10) }), casefile.Verdict{At: minute(240)}},
		{"2026-03-12T10:45:00Z", at(0), casefile.Verdict{At: minute(31)}},
		{"2026-03-12T10:45:00Z", at(31), due},
		{"after the approval expires", at(0, waiting, 0), open},
		{"after the approval expires", later(at(31, waiting, 0), func(s *casefile.Situation) { s.Expired = []time.Time{minute(30)} }), due},
		{"1 minute before expiry", later(at(0, waiting, 0), func(s *casefile.Situation) { s.Expiry = minute(30) }), casefile.Verdict{At: minute(29)}},
		{"after the recheck", later(at(241, looking, 0), func(s *casefile.Situation) { s.Rechecked = []time.Time{minute(240)} }), due},
		{"after the reply", at(0, looking, 0), open},
		{"after the reply", later(at(0, looking, 0), func(s *casefile.Situation) { s.Replies = []time.Time{minute(0)} }), due},
	} {
		w, err := casefile.ParseWhen(tc.when, received)
		if err != nil {
			t.Errorf("%q: %v", tc.when, err)
			continue
		}
		got := w.Of(tc.in)
		if got.Due {
			got.At = time.Time{}
		}
		if got.Due != tc.want.Due || !got.At.Equal(tc.want.At) {
			t.Errorf("%q in %+v: %+v, want %+v", tc.when, tc.in, got, tc.want)
		}
	}
}

// The default approval waits for whatever may meet the approval waiting.
func TestMomentsOfAnApproval(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // a customer's, an approver's
		"state == AWAITING_APPROVAL": {true, true}, "after CANCELLED": {false, false}, "+31m": {false, true}, "": {false, true},
		"after the approval expires": {true, true}, "3 days later": {false, true}, "after VERIFIED_CLOSED": {false, false}, "after the reply": {false, false},
	} {
		w, err := casefile.ParseWhen(text, received)
		if err != nil || w.Approval(false) != want[0] || w.Approval(true) != want[1] {
			t.Errorf("%q: %t %t, %v", text, w.Approval(false), w.Approval(true), err)
		}
	}
}

func FuzzParseWhen(f *testing.F) {
	for _, s := range []string{"state == AWAITING_APPROVAL", "+31m", "2 hours later", "2026-03-12T10:45:00+05:30", "before expiry", "1.5 h after HOLD_FOR_EVIDENCE", "P3DT4H", "71h59m after AWAITING_CUSTOMER", "a quarter of an hour after the approval was requested", "the next morning", "tomorrow at 9 pm", "a day and a half later", "1h30", "once the customer has been asked", "20000W", "P9999W P9999W"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := casefile.ParseWhen(s, received)
		if err != nil {
			return
		}
		if w.Delay < 0 || !w.At.IsZero() && w.At.Before(received) {
			t.Errorf("%q lies before the case: %+v", s, w)
		}
		w.Of(at(5, "AWAITING_APPROVAL", 1))
	})
}

func TestParseApproverAction(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]casefile.ApproverAction{
		"approve":                           {Deed: casefile.Approve},
		"approves what is shown":            {Deed: casefile.Approve},
		"APPROVE":                           {Deed: casefile.Approve},
		"both approvers sign":               {Deed: casefile.Approve},
		"approve the old action record":     {Deed: casefile.Approve, Old: true},
		"approve the expired action record": {Deed: casefile.Approve, Old: true},
		"late approval of the first record": {Deed: casefile.Approve, Old: true},
		"approve twice":                     {Deed: casefile.Approve, Times: 2},
		"approve again":                     {Deed: casefile.Approve, Times: 2},
		"approve 2,000":                     {Deed: casefile.Approve, Amounts: []string{"2,000"}},
		"approve ₹20,000 instead":           {Deed: casefile.Approve, Alter: true, Amounts: []string{"20,000"}},
		"approve another amount":            {Deed: casefile.Approve, Alter: true},
		"approve a different payment":       {Deed: casefile.Approve, Alter: true, AlterTarget: true},
		"approve after 29 minutes":          {Deed: casefile.Approve},
		"approve with a forged signature":   {Deed: casefile.Approve, Forged: true},
		"only one approver signs":           {Deed: casefile.Approve, Signer: 1},
		"the second approver approves":      {Deed: casefile.Approve, Signer: 2},
		"deny":                              {Deed: casefile.Deny},
		"denies the refund":                 {Deed: casefile.Deny},
		"reject it":                         {Deed: casefile.Deny},
		"does not approve":                  {Deed: casefile.Deny},
		"let it expire":                     {Deed: casefile.Expire},
		"lets the approval expire":          {Deed: casefile.Expire},
		"do nothing":                        {Deed: casefile.Nothing},
		"nobody answers":                    {Deed: casefile.Nothing},
		"never approves":                    {Deed: casefile.Nothing},
	} {
		got, err := casefile.ParseApproverAction(text)
		want.Text, want.Times = text, max(want.Times, 1)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %#v (%v), want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "sings", "has lunch"} {
		if a, err := casefile.ParseApproverAction(text); err == nil {
			t.Errorf("%q is read as %+v", text, a)
		}
	}
}

func FuzzParseApproverAction(f *testing.F) {
	f.Add("approve 20,000 instead of 2,000")
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := casefile.ParseApproverAction(s); err == nil && (a.Deed == "" || a.Times < 1) {
			t.Errorf("%q is %+v", s, a)
		}
	})
}
