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
		once(founding, at(roles.RefundExecutor, executor.Called, 1)),
		once(founding, at(roles.Gateway, gateway.RequestStored, 1)),
		once(withMessage, at(roles.Gateway, gateway.RequestSent, 2)),
		once(withdrawn, at(roles.Gateway, gateway.RequestChecked, 2)),
	}
	startCrashDesk(t, len(plan), 1).play(plan)
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
	startCrashDesk(t, len(plan), 2).play(plan)
	report(t, plan)
}

// SIGKILL at every place the stories pass, a list that a run without any kill
// gives; and twice at the same place, so that the process that makes good dies
// as well.
func TestCrashEverywhere(t *testing.T) {
	if !*everywhere {
		t.Skip("make test-crash")
	}
	plans := slices.Collect(slices.Chunk(allPlaces(t), 20))
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
				startCrashDesk(t, len(plan), replicas).play(plan)
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

// allPlaces plays every story without a kill and gives the places passed: of
// the founding request all, of the others those that are theirs alone.
func allPlaces(t *testing.T) []*crash {
	t.Helper()
	stories := []*story{founding, withMessage, withdrawn}
	d := startCrashDesk(t, len(stories), 1)
	d.plain = true
	quiet := make([]*crash, len(stories))
	for i, s := range stories {
		quiet[i] = &crash{story: s}
	}
	d.play(quiet)
	var out []*crash
	for i, s := range stories {
		for _, p := range d.passed[caseID(i)] {
			theirs := p.service == roles.Orchestrator && p.input >= atApproval && (s == withdrawn || p.input == atApproval) ||
				p.service == roles.Gateway && p.input > 1
			if s == founding || theirs {
				out = append(out, once(s, p))
			}
		}
	}
	for _, p := range orchestrator.Points() {
		if !slices.ContainsFunc(out, func(c *crash) bool { return c.point == string(p) }) {
			t.Errorf("no story passes %s", p)
		}
	}
	return out
}
