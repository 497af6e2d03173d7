package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// desk is a broker, a provider and what an orchestrator needs.
type desk struct {
	t      *testing.T
	broker *bustest.Broker
	client *payments.Client
	n      int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, broker: bustest.Desk(t, bustest.Options{Manifest: bustest.Quick(2*time.Second, 50*time.Millisecond, 100*time.Millisecond)})}
	provider := sandboxtest.Start(t)
	provider.Load(t, sandboxtest.Duplicate())
	var err error
	if d.client, err = payments.New(payments.Config{URL: provider.URL, Key: sandboxtest.VerifyOwnerKey}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.client.Close)
	return d
}

// build makes an orchestrator on its own connection; nil takes the JetStream
// store.
func (d *desk) build(st store) *orchestrator {
	d.t.Helper()
	conn := d.broker.Connect(roles.Orchestrator)
	if st == nil {
		st = casestore.NewJetStream(conn)
	}
	reg, err := approval.NewRegistry("1")
	if err != nil {
		d.t.Fatal(err)
	}
	cfg := Defaults()
	cfg.PolicyCorpus, cfg.Workers, cfg.SweepEvery = "c1", 8, 100*time.Millisecond
	o, err := build(cfg, Deps{Bus: conn, Log: slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter("test")}, st, d.client, func() (*approval.Registry, error) { return reg, nil })
	if err != nil {
		d.t.Fatal(err)
	}
	return o
}

// run runs an orchestrator until stop, or the test's end.
func (d *desk) run(o *orchestrator) (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx) }()
	done := false
	stop = func() {
		if done {
			return
		}
		done = true
		cancel()
		if err := <-ended; err != nil {
			d.t.Errorf("the orchestrator ended: %v", err)
		}
	}
	d.t.Cleanup(stop)
	return stop
}

// post is a delivery of a new case.
func (d *desk) post(id string) *bus.Message {
	d.t.Helper()
	return d.deliver(roles.Gateway, id, &amendsv1.CaseOpened{
		Channel: "web", Message: &amendsv1.UntrustedText{Text: "Order 8472 was charged twice", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER},
		BodySha256: strings.Repeat("0", 64), PostedBy: "k",
	})
}

func (d *desk) deliver(from roles.Service, id string, payload proto.Message) *bus.Message {
	d.t.Helper()
	d.n++
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(time.Now(), id, string(rune(d.n))), CaseId: id, Tenant: "acme-in", RequestId: id, CustomerId: "cust_5519",
		Sender: string(from), Recipient: string(roles.Orchestrator),
	}
	data, err := envelope.Seal(env, payload)
	if err != nil {
		d.t.Fatal(err)
	}
	subj := subject.Intake(string(from), "acme-in", id)
	parts, err := subject.Parse(subj)
	if err != nil {
		d.t.Fatal(err)
	}
	return &bus.Message{Envelope: env, Payload: payload, Parts: parts, Stored: bus.Stored{Subject: subj, Time: time.Now(), Data: data}, Stream: roles.StreamIntake, Delivered: 1}
}

func (d *desk) load(o *orchestrator, id string) *amendsv1.CaseRecord {
	d.t.Helper()
	snap, err := o.store.Load(d.t.Context(), "acme-in", id)
	if err != nil {
		d.t.Fatal(err)
	}
	return snap.Record
}

// A commit whose acknowledgement was lost is found in the record and not made
// again (STATE-1, LOSS-1).
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lost := 0
	o := d.build(casestore.NewMemory(casestore.WithFault(func(op string) error {
		if op == casestore.OpAck && lost == 0 {
			lost++
			return errors.New("connection lost")
		}
		return nil
	})))
	m := d.post("req-8472")
	if err := o.handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if lost != 1 {
		t.Fatal("no acknowledgement was lost: the test shows nothing")
	}
	if rec := d.load(o, "req-8472"); rec.GetVersion() != 2 || len(rec.GetHandled()) != 1 {
		t.Errorf("version %d with %d inputs", rec.GetVersion(), len(rec.GetHandled()))
	}
	if n := d.broker.Count(roles.StreamTasks, "task.>"); n != 2 {
		t.Errorf("%d tasks were sent, want pay and pol", n)
	}
}

// A process whose cache is stale may not refuse what the newest record would
// accept: here an approval that the stale record does not wait for (LOSS-1).
func TestStaleCacheThrowsNothingAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	st := casestore.NewMemory()
	first, second := d.build(st), d.build(st)
	if err := first.handle(t.Context(), d.post("req-8472")); err != nil {
		t.Fatal(err)
	}
	// The second process cancels; the first still has version 2 in its cache.
	if err := second.handle(t.Context(), d.deliver(roles.Gateway, "req-8472", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"})); err != nil {
		t.Fatal(err)
	}
	late := d.deliver(roles.Gateway, "req-8472", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"})
	if err := first.handle(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	rec := d.load(first, "req-8472")
	if rec.GetVersion() != 4 || rec.GetCancelRevision() != 1 {
		t.Errorf("version %d, cancel revision %d; the second cancel must be judged on the newest record", rec.GetVersion(), rec.GetCancelRevision())
	}
	if h := rec.GetHandled(); h[len(h)-1].GetMessageId() != late.Envelope.GetMessageId() || h[len(h)-1].GetRefused() != "not_expected_in_CANCELLED" {
		t.Errorf("last input %v", h[len(h)-1])
	}
}

// Nor may it set a case's one timer by what it remembers: the newest record's
// deadline would go by unnoticed (LIVE-1).
func TestStaleCacheMovesNoTimer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	st := casestore.NewMemory()
	first, second := d.build(st), d.build(st)
	if err := first.handle(t.Context(), d.post("req-8472")); err != nil {
		t.Fatal(err)
	}
	if err := second.handle(t.Context(), d.deliver(roles.Gateway, "req-8472", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"})); err != nil {
		t.Fatal(err)
	}
	early := d.deliver(roles.Orchestrator, "req-8472", &amendsv1.TimerDue{ArmedAtVersion: 2})
	if err := first.handle(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	next, ok := casework.Next(d.load(first, "req-8472"))
	if !ok {
		t.Fatal("nothing is due")
	}
	s, err := d.broker.Admin().Stream(t.Context(), roles.StreamTimers)
	if err != nil {
		t.Fatal(err)
	}
	armed, err := s.GetLastMsgForSubject(t.Context(), subject.Timer("acme-in", "req-8472"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := armed.Header.Get("Nats-Schedule"), "@at "+next.UTC().Format(time.RFC3339Nano); got != want {
		t.Errorf("the timer is set %s, the newest record wants %s", got, want)
	}
}

// What cannot belong to any case is a dead letter, not lost (LOSS-2).
func TestInputOfNoCaseIsADeadLetter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.run(d.build(nil))
	gw := d.broker.Connect(roles.Gateway)
	m := d.deliver(roles.Gateway, "req-404", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"})
	if _, err := gw.Publish(t.Context(), m.Subject, m.Data); err != nil {
		t.Fatal(err)
	}
	bustest.Await(t, "the dead letter", func() bool { return d.broker.Count(roles.StreamDeadLetters, "dead.orchestrator.acme-in.req-404") == 1 })
}

// After a start everything recomputable that was lost is sent again, from the
// records alone (LOSS-2).
func TestStartSendsAgainWhatWasLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	stop := d.run(d.build(nil))
	gw := d.broker.Connect(roles.Gateway)
	m := d.post("req-8472")
	if _, err := gw.Publish(t.Context(), m.Subject, m.Data); err != nil {
		t.Fatal(err)
	}
	sent := func() bool {
		return d.broker.Count(roles.StreamTasks, "task.>") == 2 && d.broker.Count(roles.StreamViews, "view.acme-in.req-8472") == 1 && d.broker.Count(roles.StreamTimers, "timer.acme-in.req-8472") == 1
	}
	bustest.Await(t, "tasks, view and timer", sent)
	stop()
	d.broker.Purge(roles.StreamTasks, roles.StreamViews, roles.StreamTimers)
	d.run(d.build(nil))
	bustest.Await(t, "tasks, view and timer again", sent)
}

// A case whose timer was lost is found by the sweeper (LIVE-1).
func TestSweeperFindsACaseWithoutATimer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(nil)
	o.lim.Deadline = 20 * time.Millisecond
	if err := o.handle(t.Context(), d.post("req-8472")); err != nil {
		t.Fatal(err)
	}
	d.broker.Purge(roles.StreamTimers)
	s := &sweeper{orchestrator: o, cases: map[string]openCase{}}
	if err := s.overdue(t.Context(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n := d.broker.Count(roles.StreamTimers, "timer.acme-in.req-8472") + d.broker.Count(roles.StreamTimers, "due.acme-in.req-8472"); n == 0 {
		t.Error("the sweeper armed no timer for an overdue case")
	}
}

// A view never replaces a newer one, whatever a process remembers.
func TestOlderViewNeverReplacesANewer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(nil)
	view := func(version uint64) *amendsv1.CaseView {
		return &amendsv1.CaseView{Tenant: "acme-in", CaseId: "req-8472", RequestId: "req-8472", CustomerId: "cust_5519", Version: version, State: "INVESTIGATING", OpenedAt: timestamppb.Now()}
	}
	for _, v := range []uint64{2, 6, 5} {
		if v == 5 {
			o.views.forget() // as after a reconnect
		}
		if err := o.send(t.Context(), &amendsv1.CaseRecord{}, casework.Wanted{View: view(v)}); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := o.conn.Last(t.Context(), roles.StreamViews, subject.View("acme-in", "req-8472"))
	if err != nil {
		t.Fatal(err)
	}
	var have amendsv1.CaseView
	if err := proto.Unmarshal(stored.Data, &have); err != nil || have.GetVersion() != 6 {
		t.Errorf("stored view is of version %d, %v", have.GetVersion(), err)
	}
}

// A process clock that runs ahead decides nothing: tasks are sent all the same.
func TestClockAheadDecidesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(nil)
	o.now = func() time.Time { return time.Now().Add(time.Hour) }
	if err := o.handle(t.Context(), d.post("req-8472")); err != nil {
		t.Fatal(err)
	}
	if n := d.broker.Count(roles.StreamTasks, "task.>"); n != 2 {
		t.Errorf("%d tasks were sent, want pay and pol", n)
	}
}

// While the payments side is away a post waits; on its last delivery it becomes
// a case for a person, not a dead letter (LOSS-1). A withdrawal needs nobody.
func TestOwnerLookupAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(nil)
	o.owners = nobody{}
	m := d.post("req-8472")
	if err := o.handle(t.Context(), m); err == nil {
		t.Fatal("the post was handled without the look-up")
	}
	m.Delivered, m.LastDelivery = 5, true
	if err := o.handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	rec := d.load(o, "req-8472")
	if rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF || rec.GetTriage().GetReason() != "owner_lookup_unavailable" {
		t.Errorf("the case is %s, %q", rec.GetState(), rec.GetTriage().GetReason())
	}
}

// nobody answers no look-up.
type nobody struct{}

func (nobody) VerifyOwner(context.Context, string, string, string) (bool, error) {
	return false, errors.New("away")
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	err := Config{Workers: 0}.Validate()
	for _, want := range []string{"payments.url", "payments.key_file", "approver_registry", "policy_corpus", "workers", "sweep_every", "approval_expiry"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the problem with %s is not named: %v", want, err)
		}
	}
}
