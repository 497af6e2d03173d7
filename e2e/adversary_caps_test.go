package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// flood sends n tasks before it looks at the first answer, and counts them.
func (s *siege) flood(n int, order func(i int) (*amendsv1.ActionRecord, []*amendsv1.SignedDecision)) string {
	s.t.Helper()
	type sent struct{ task, caseID string }
	var out []sent
	for i := range n {
		a, ds := order(i)
		env, assign := s.taskOf(a, executing(a, ds...))
		task, caseID := s.assign(env, must(assign))
		out = append(out, sent{task, caseID})
	}
	counts := map[string]int{}
	for _, o := range out {
		counts[s.answer(o.task, o.caseID)]++
	}
	var words []string
	for _, got := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[got], got))
	}
	return strings.Join(words, ", ")
}

// sliceAttempts: small refunds of one order, in one action, in two, in two
// cases, at once.
func sliceAttempts() []attempt {
	thrice := func(s *siege, minor int64) string {
		order := s.fresh()
		s.paid(order, minor, 3)
		return order
	}
	unapproved := func(f func(s *siege, order string) *amendsv1.ActionRecord) func(*siege) string {
		return func(s *siege) string {
			order := thrice(s, 60000)
			if got := s.order(s.wants(order, 60000, "b")); got != "acknowledged" {
				return "the first: " + got
			}
			return s.order(f(s, order))
		}
	}
	return []attempt{
		{asOrchestrator, "two slices in one action", func(s *siege) string { return s.order(s.wants(thrice(s, 60000), 60000, "b", "c")) }, "approval_missing"},
		{asOrchestrator, "a second slice, same case", unapproved(func(s *siege, order string) *amendsv1.ActionRecord { return s.wants(order, 60000, "c") }), "approval_missing"},
		{asOrchestrator, "a second slice, another case", unapproved(func(s *siege, order string) *amendsv1.ActionRecord {
			a := s.wants(order, 60000, "c")
			a.CaseId += "-2"
			return rekey(a)
		}), "approval_missing"},
		{asOrchestrator, "a second slice, exactly up to the threshold", unapproved(func(s *siege, order string) *amendsv1.ActionRecord { return s.wants(order, 40000, "c") }), "approval_missing"},
		{asOrchestrator, "control: a second slice, just below it", unapproved(func(s *siege, order string) *amendsv1.ActionRecord { return s.wants(order, 39999, "c") }), "acknowledged"},
		{asOrchestrator, "ten slices of ten cases at once", func(s *siege) string {
			order := s.fresh()
			s.paid(order, 60000, 11)
			return s.flood(10, func(i int) (*amendsv1.ActionRecord, []*amendsv1.SignedDecision) {
				a := s.wants(order, 60000, string(rune('b'+i)))
				a.CaseId += fmt.Sprintf("-%d", i)
				return rekey(a), nil
			})
		}, "1 acknowledged, 9 approval_missing"},
		{asOrchestrator, "one payment in ten slices, of ten cases", func(s *siege) string {
			order := s.fresh()
			s.paid(order, 200000, 2)
			return s.flood(10, func(i int) (*amendsv1.ActionRecord, []*amendsv1.SignedDecision) {
				a := s.wants(order, 30000)
				a.CaseId += fmt.Sprintf("-%d", i)
				return rekey(a), nil
			})
		}, "3 acknowledged, 7 approval_missing"},
		{asBoth, "approved by one, slice by slice up to the second threshold", func(s *siege) string {
			order := s.fresh()
			s.paid(order, 3000000, 3)
			b, c := s.wants(order, 3000000, "b"), s.wants(order, 3000000, "c")
			if got := s.order(b, s.decision("maya-1", b, 1)); got != "acknowledged" {
				return "the first: " + got
			}
			return s.order(c, s.decision("maya-1", c, 2))
		}, "approvers_missing"},
	}
}

// emptyTheCaps lets the orchestrator's credential take all that the caps give:
// small refunds on order after order, hour after hour, for two days.
func (s *siege) emptyTheCaps() {
	s.t.Helper()
	a, err := s.Auditor()
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Close()
	began := s.clock.Now()
	for hour := range 7 {
		if hour > 0 {
			if err := a.AdvanceTo(s.ctx, began.Add(time.Duration(hour)*62*time.Minute)); err != nil {
				s.t.Fatal(err)
			}
		}
		// What the attempts before took is in the first hour and in the day.
		s.run(attempt{asOrchestrator, fmt.Sprintf("999.99 on each of 55 orders, hour %d", hour+1), func(s *siege) string {
			counts := s.flood(55, func(int) (*amendsv1.ActionRecord, []*amendsv1.SignedDecision) { return s.twice(99999), nil })
			for _, reason := range []string{"cap_exceeded_hour", "cap_exceeded_day"} {
				if strings.Contains(counts, reason) {
					s.t.Log(counts)
					return reason
				}
			}
			return counts
		}, map[bool]string{true: "cap_exceeded_hour", false: "cap_exceeded_day"}[hour < 4]})
	}
	for _, a := range []attempt{
		{asOrchestrator, "the other tenant's caps are its own", func(s *siege) string {
			order := s.fresh()
			s.foreign(order, 50000)
			a := s.wants(order, 50000)
			a.Tenant = otherTenant
			return s.order(a)
		}, "acknowledged"},
		{asOrchestrator, "control: small, with the caps empty, approved", by("maya-1"), "acknowledged"},
		{asOrchestrator, "small, with the caps empty, dated yesterday", func(s *siege) string {
			a := s.twice(99999)
			a.Created = timestamppb.New(s.clock.Now().Add(-25 * time.Hour))
			return s.order(a)
		}, "cap_exceeded_day"},
	} {
		s.run(a)
	}
}

// stopAttempts: the console's credential turns the stop switch, and gains
// nothing by it; nobody else can.
func stopAttempts() []attempt {
	turn := func(s *siege, scope string, data []byte) { s.steal(roles.Console).put(subject.Control(scope), data) }
	word := func(s *siege, scope string, stopped bool) []byte {
		return must(&amendsv1.StopSwitch{Scope: scope, Stopped: stopped, By: "eve", Reason: "x", At: timestamppb.New(s.clock.Now())})
	}
	under := func(data func(*siege) []byte) func(*siege) string {
		return func(s *siege) string {
			turn(s, subject.StopAll, data(s))
			defer turn(s, subject.StopAll, word(s, subject.StopAll, false))
			return by("maya-1")(s)
		}
	}
	return []attempt{
		{asBoth, "approved, while all is stopped", under(func(s *siege) []byte { return word(s, subject.StopAll, true) }), "stopped"},
		{asBoth, "approved, the stop switch overwritten with rubbish", under(func(*siege) []byte { return []byte{0xff} }), "stopped"},
		{asBoth, "approved, the stop switch overwritten with a tenant's release", under(func(s *siege) []byte { return word(s, allinone.Tenant, false) }), "stopped"},
		{asBoth, "approved, one tenant stopped, all released", func(s *siege) string {
			turn(s, allinone.Tenant, word(s, allinone.Tenant, true))
			turn(s, subject.StopAll, word(s, subject.StopAll, false))
			defer turn(s, allinone.Tenant, word(s, allinone.Tenant, false))
			return by("maya-1")(s)
		}, "stopped"},
		{asBoth, "unapproved, after he released the stop himself", func(s *siege) string {
			turn(s, subject.StopAll, word(s, subject.StopAll, true))
			turn(s, subject.StopAll, word(s, subject.StopAll, false))
			return s.order(s.twice(100000))
		}, "approval_missing"},
		{asBoth, "control: approved, after the stop was released", by("maya-1"), "acknowledged"},
	}
}
