package e2e_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/services/gateway/gateway"
	"github.com/amends-dev/amends/services/orchestrator/orchestrator"
	"github.com/amends-dev/amends/services/refund-executor/executor"
)

// everywhere is given by make test-crash; it prints the table.
var everywhere = flag.Bool("crash-everywhere", false, "kill the services at every place the stories pass, and print what came of it")

// The inputs of the founding request.
const (
	atPost = iota + 1
	atEvidence
	atMerge
	atApproval
	atEffect
	atDraft
	atVerification
)

func at[P ~string](s roles.Service, p P, input int) place { return place{s, string(p), input} }

func once(s *story, p place) *crash { return &crash{story: s, place: p, times: 1} }

// SIGKILL once at every point of orchestrator, gateway and executor, at one
// input each; the process is started again, and everything holds: STATE-1,
// LOSS-1, MONEY-1, TRUTH-2, LIVE-1.
func TestCrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for the broker to hand out again what was in a killed process")
	}
	orch := func(p orchestrator.Point, input int) place { return at(roles.Orchestrator, p, input) }
	plan := []*crash{
		once(founding, orch(orchestrator.InputTaken, atPost)),
		once(founding, orch(orchestrator.CaseLoaded, atVerification)),
		once(founding, orch(orchestrator.LookedUp, atApproval)),
		once(founding, orch(orchestrator.Decided, atEffect)),
		once(founding, orch(orchestrator.CommitSent, atMerge)),
		once(founding, orch(orchestrator.Committed, atApproval)),
		once(founding, orch(orchestrator.TaskSent, atPost)),
		once(founding, orch(orchestrator.TimerSent, atPost)),
		once(founding, orch(orchestrator.ViewSent, atVerification)),
		once(founding, orch(orchestrator.AllSent, atDraft)),
		once(founding, orch(orchestrator.Acknowledged, atEvidence)),
		once(founding, at(roles.Gateway, gateway.RequestStored, 1)),
		once(withMessage, at(roles.Gateway, gateway.RequestSent, 2)),
		once(withdrawn, at(roles.Gateway, gateway.RequestChecked, 2)),
	}
	startCrashDesk(t, 1).play(plan)
	report(t, plan)
}

// SIGKILL at places of the executor, one of each kind (B01, B28).
func TestCrashOfTheExecutorB01B28(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for the broker to hand out again what was in a killed process")
	}
	exec := func(p executor.Step, input int) place { return at(roles.RefundExecutor, p, input) }
	plan := []*crash{
		once(founding, exec(executor.IntentSent, 1)),
		once(founding, exec(executor.StopLookedAt, 1)),
		once(founding, exec(executor.Called, 1)),
		once(small, exec(executor.ReservationDurable, 1)),
		once(threefold, exec(executor.OutcomeDurable, 1)),
		once(threefold, exec(executor.Called, 2)),
		once(withdrawnLate, exec(executor.LookedUp, 2)),
		once(founding, exec(executor.ResultSent, 1)),
	}
	startCrashDesk(t, 1).play(plan)
	report(t, plan)
}

// One of two orchestrators is killed and not started again: the other takes
// over.
func TestCrashOfOneOfTwo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for the broker to hand out again what was in a killed process")
	}
	plan := []*crash{once(founding, at(roles.Orchestrator, orchestrator.Committed, atApproval))}
	plan[0].stays = true
	startCrashDesk(t, 2).play(plan)
	report(t, plan)
}

// SIGKILL at every place the stories pass, a list that a run without any kill
// gives; and twice at the same place, so that the process that makes good dies
// as well.
func TestCrashEverywhere(t *testing.T) {
	if !*everywhere {
		t.Skip("make test-crash")
	}
	plans := desks(allPlaces(t))
	var again []*crash
	for _, p := range []place{
		at(roles.Orchestrator, orchestrator.Decided, atMerge), at(roles.Orchestrator, orchestrator.InputTaken, atApproval),
		at(roles.Orchestrator, orchestrator.AllSent, atVerification), at(roles.RefundExecutor, executor.Called, 1),
	} {
		c := once(founding, p)
		c.times = 2
		again = append(again, c)
	}
	plans = append(plans, again)
	for _, p := range []place{
		at(roles.Orchestrator, orchestrator.TaskSent, atPost), at(roles.Orchestrator, orchestrator.CommitSent, atApproval),
		at(roles.Orchestrator, orchestrator.Decided, atEffect),
	} {
		c := once(founding, p)
		c.stays = true
		plans = append(plans, []*crash{c})
	}
	begun := time.Now()
	t.Run("desks", func(t *testing.T) {
		for i, plan := range plans {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				replicas := 1
				if plan[0].stays {
					replicas = 2
				}
				startCrashDesk(t, replicas).play(plan)
			})
		}
	})
	report(t, slices.Concat(plans...))
	summary(slices.Concat(plans...))
	kills := 0
	for _, c := range slices.Concat(plans...) {
		kills += len(c.killed)
	}
	t.Logf("%d kills in %s", kills, time.Since(begun).Round(time.Second))
}

// perDesk is how many cases a desk has: they are played one after the other.
const perDesk = 20

// desks shares a plan out. Stories that need a desk for themselves get one.
func desks(plan []*crash) (out [][]*crash) {
	var shared []*crash
	alone := map[*story][]*crash{}
	for _, c := range plan {
		if c.story.prepare == nil {
			shared = append(shared, c)
		} else {
			alone[c.story] = append(alone[c.story], c)
		}
	}
	out = slices.Collect(slices.Chunk(shared, perDesk))
	for _, s := range stories {
		out = slices.AppendSeq(out, slices.Chunk(alone[s], perDesk))
	}
	return out
}

// allPlaces plays every story without a kill and gives the places passed: of
// the founding request all, of the others those that are theirs alone.
func allPlaces(t *testing.T) (out []*crash) {
	t.Helper()
	var quiet []*crash
	for _, s := range stories {
		quiet = append(quiet, &crash{story: s})
	}
	for _, plan := range desks(quiet) {
		d := startCrashDesk(t, 1)
		d.plain = true
		d.play(plan)
		for i, c := range plan {
			for _, p := range d.passed[caseID(i)] {
				if c.story == founding || c.story.owns(p) {
					out = append(out, once(c.story, p))
				}
			}
		}
		d.end()
	}
	for _, p := range orchestrator.Points() {
		if !slices.ContainsFunc(out, func(c *crash) bool { return c.point == string(p) }) {
			t.Errorf("no story passes %s", p)
		}
	}
	for _, p := range executor.Steps() {
		if !slices.ContainsFunc(out, func(c *crash) bool { return c.service == roles.RefundExecutor && c.point == string(p) }) {
			t.Errorf("no story passes %s of the executor", p)
		}
	}
	return out
}

// owns says whether a place is passed for what a story has beside the founding
// request.
func (s *story) owns(p place) bool {
	switch p.service {
	case roles.RefundExecutor:
		return s != withMessage
	case roles.Gateway:
		return p.input > 1 && s.requests != nil
	default:
		return s == withdrawn && p.input >= atApproval || s == withMessage && p.input == atApproval
	}
}
