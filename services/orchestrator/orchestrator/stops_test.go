package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// heldRecord is a case whose one attempt met the stop some time ago; its own
// deadline is far off.
func heldRecord(tenant, id string) *amendsv1.CaseRecord {
	then := timestamppb.New(time.Now().Add(-20 * time.Minute))
	action := &amendsv1.ActionRecord{
		Tenant: tenant, CaseId: id, OrderId: "8472", CaseVersion: 5, Proposal: 1, EvidenceSha256: strings.Repeat("ab", 32),
		Created: then, Expires: timestamppb.New(then.AsTime().Add(time.Hour)),
		Refunds: []*amendsv1.ActionRefund{{
			PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Kind: "duplicate_capture", IdempotencyKey: approval.Key(id, "pay_8472_b"),
		}},
	}
	sum, _ := approval.ActionSHA256(action) // canonical as written here
	return &amendsv1.CaseRecord{
		Tenant: tenant, CaseId: id, RequestId: id, CustomerId: "cust_5519", Channel: "web", Version: 1, State: amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED,
		OpenedAt: then, UpdatedAt: then, Pins: &amendsv1.Pins{Rules: "r/1", PolicyCorpus: "c1", ToolSchemas: "t/1", Topology: "t/1"}, Triage: &amendsv1.Triage{Outcome: amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED, OrderId: "8472", Reason: "r"},
		Action: action, ActionSha256: sum, Consumption: &amendsv1.Consumption{}, Deadlines: &amendsv1.Deadlines{Effect: timestamppb.New(time.Now().Add(time.Hour))},
		Tasks: []*amendsv1.TaskNode{{
			TaskId: casework.TaskID(id, "execute-1"), ParentTaskId: casework.TaskID(id, "root"), Slice: amendsv1.Slice_SLICE_EXECUTE, Target: string(roles.RefundExecutor),
			Status: amendsv1.TaskStatus_TASK_STATUS_RUNNING,
			Attempts: []*amendsv1.Attempt{{
				Number: 1, Status: amendsv1.AttemptStatus_ATTEMPT_STATUS_FAILED, Reason: "held", DispatchedAt: then, Deadline: then, MessageId: ident.Derive(then.AsTime(), id),
			}},
		}},
		Timeline: []*amendsv1.TimelineEntry{{Version: 1, Row: "effect.held", State: amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED, At: then, Actor: "refund-executor"}},
	}
}

func (d *desk) hold(st store, tenant, id string) {
	d.t.Helper()
	rec := heldRecord(tenant, id)
	opened := d.post(id)
	_, err := st.Commit(d.t.Context(), &amendsv1.CaseCommit{
		FirstVersion: 1, Record: rec,
		Inputs: []*amendsv1.AppliedInput{{Envelope: opened.Envelope, BrokerTime: rec.GetOpenedAt(), Stream: roles.StreamIntake}},
	}, 0)
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) turn(c *bus.Conn, scope string, stopped bool) {
	d.t.Helper()
	data, err := proto.Marshal(&amendsv1.StopSwitch{Stopped: stopped, Scope: scope, By: "sam", Reason: "r", At: timestamppb.Now()})
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := c.Publish(d.t.Context(), subject.Control(scope), data); err != nil {
		d.t.Fatal(err)
	}
}

func tasksOf(tenant string) string { return subject.Task(string(roles.RefundExecutor), tenant, "*") }

// Cases that the stop holds go on when nothing stops them any more, each once
// however many replicas know it, and also when the release came while no
// orchestrator ran (LIVE-1).
func TestReleaseWakesHeldCases(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	console := d.broker.Connect(roles.Console)
	o := d.build(nil)
	for _, id := range []string{"req-1", "req-2", "req-3"} {
		d.hold(o.store, "acme-in", id)
	}
	d.turn(console, "acme-in", true)
	d.turn(console, subject.StopAll, true)
	d.turn(console, "acme-in", false) // released while nobody runs, and all are stopped still
	other := d.build(nil)
	stop := d.run(o)
	d.run(other)
	known := func(id string, os ...*orchestrator) bool {
		return slices.ContainsFunc(os, func(o *orchestrator) bool {
			return slices.ContainsFunc(o.held.list(), func(c heldCase) bool { return c.id == id })
		})
	}
	// Each replica knows those that it met on the walk they share.
	bustest.Await(t, "the held cases to be known", func() bool {
		return known("req-1", o, other) && known("req-2", o, other) && known("req-3", o, other)
	})
	if n := d.broker.Count(roles.StreamTasks, "task.>"); n != 0 {
		t.Fatalf("%d tasks were sent while all are stopped", n)
	}
	d.turn(console, "beta", true)
	held := 0
	holdBeta := func() {
		held++
		d.hold(o.store, "beta", fmt.Sprintf("beta-%d", held))
	}
	holdBeta()
	d.turn(console, subject.StopAll, false)
	bustest.Await(t, "the cases of acme-in to go on", func() bool { return d.broker.Count(roles.StreamTasks, tasksOf("acme-in")) >= 3 })
	if n := d.broker.Count(roles.StreamTasks, tasksOf("beta")); n != 0 {
		t.Fatalf("%d tasks of a tenant that is stopped", n)
	}
	// One replica goes that alone knows some cases of beta.
	holdBeta()
	bustest.Await(t, "the one replica to know a case of beta", func() bool {
		last := fmt.Sprintf("beta-%d", held)
		if known(last, other) && !known(last, o) {
			holdBeta()
		}
		return known(last, o)
	})
	stop()
	d.turn(console, "beta", false)
	bustest.Await(t, "the cases of beta to go on", func() bool { return d.broker.Count(roles.StreamTasks, tasksOf("beta")) >= held })
	for _, id := range []string{"req-1", "req-2", "req-3"} {
		rec := d.load(o, id)
		a := rec.GetTasks()[0].GetAttempts()
		if rec.GetVersion() != 2 || len(a) != 1 || len(rec.GetHandled()) != 1 || casework.Held(rec) {
			t.Errorf("case %s: version %d, %d attempts, %v", id, rec.GetVersion(), len(a), rec.GetHandled())
			continue
		}
		if wait := time.Until(a[0].GetDeadline().AsTime()); wait < -time.Minute || wait > time.Minute {
			t.Errorf("case %s: the answer is due in %s", id, wait)
		}
	}
}

// A case that is not held is told nothing, and one that moved on elsewhere is
// let go.
func TestReleaseTellsNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(casestore.NewMemory())
	w := &watcher{orchestrator: o, switches: map[string]stopSwitch{}}
	d.turn(d.broker.Connect(roles.Console), subject.StopAll, false)
	d.hold(o.store, "acme-in", "req-1")
	o.held.note(d.load(o, "req-1"))
	moved := heldRecord("acme-in", "req-2")
	d.hold(o.store, "acme-in", "req-2")
	after := proto.CloneOf(moved)
	after.Version, after.State, after.Deadlines, after.Tasks = 2, amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF, nil, nil
	snap, err := o.store.Load(t.Context(), "acme-in", "req-2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.store.Commit(t.Context(), &amendsv1.CaseCommit{
		FirstVersion: 2, Record: after, Inputs: []*amendsv1.AppliedInput{{Envelope: d.post("req-2").Envelope, BrokerTime: after.GetOpenedAt(), Stream: roles.StreamIntake}},
	}, snap.Seq); err != nil {
		t.Fatal(err)
	}
	o.held.note(moved)
	if n := len(o.held.list()); n != 2 {
		t.Fatalf("%d held cases are known", n)
	}
	for range 2 {
		if err := w.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if one, two := d.load(o, "req-1"), d.load(o, "req-2"); one.GetVersion() != 2 || two.GetVersion() != 2 || len(o.held.list()) != 0 {
		t.Errorf("versions %d and %d, %d known", one.GetVersion(), two.GetVersion(), len(o.held.list()))
	}
}

// A release while a start's walk is under way, on the one consumer that all
// replicas share: whatever was not handed out yet, and whatever was to a replica
// that is gone, is watched in the end (LIVE-1).
func TestReleaseSkipsNothingOfAStartsWalkLIVE1(t *testing.T) {
	t.Parallel()
	const open = 40
	for name, handedOut := range map[string]int{"nothing handed out yet": 0, "some": 10, "all, and not settled": open} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			one, two := d.build(nil), d.build(nil)
			for i := range open {
				d.hold(one.store, "acme-in", fmt.Sprintf("req-%d", i))
			}
			newest, err := one.conn.Last(t.Context(), roles.StreamCases, subject.Case("*", "*"))
			if err != nil {
				t.Fatal(err)
			}
			// A third began the walk and is gone before it settled anything.
			if err := one.conn.ResetConsumer(t.Context(), roles.ConsumerSweep, 1); err != nil {
				t.Fatal(err)
			}
			sweep, err := d.broker.Admin().Consumer(t.Context(), roles.StreamCases, roles.ConsumerSweep)
			if err != nil {
				t.Fatal(err)
			}
			if handedOut > 0 {
				got, err := sweep.Fetch(handedOut)
				if err != nil {
					t.Fatal(err)
				}
				for range got.Messages() {
				}
			}
			starts := &sweeper{orchestrator: one, cases: map[string]openCase{}}
			releases := &sweeper{orchestrator: two, cases: map[string]openCase{}}
			if err := releases.walkFrom(t.Context(), newest.Seq); err != nil {
				t.Fatal(err)
			}
			if _, err := starts.goOn(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			watched := map[string]bool{}
			for _, s := range []*sweeper{starts, releases} {
				for id := range s.cases {
					watched[id] = true
				}
			}
			if len(watched) != open {
				t.Errorf("%d of %d open cases are watched", len(watched), open)
			}
		})
	}
}
