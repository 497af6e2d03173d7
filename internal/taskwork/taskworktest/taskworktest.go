package taskworktest

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// What every task is about unless a test says otherwise.
const (
	Tenant   = "acme-in"
	Customer = "cust_5519"
	Order    = "8472"
	Case     = "req-8472"
)

// patience bounds every wait of a test.
const patience = 20 * time.Second

// Desk is a broker with one specialist at work.
type Desk struct {
	Broker *bustest.Broker

	tb           testing.TB
	service      roles.Service
	orchestrator *bus.Conn
	results      chan *bus.Message
	tasks        atomic.Int64
}

// Start runs a specialist until the test ends; the test fails if it fails.
func Start(tb testing.TB, service roles.Service, o bustest.Options, run func(ctx context.Context, conn *bus.Conn) error) *Desk {
	tb.Helper()
	b := bustest.Desk(tb, o)
	d := &Desk{Broker: b, tb: tb, service: service, orchestrator: b.Connect(roles.Orchestrator), results: make(chan *bus.Message, 64)}
	d.background(func(ctx context.Context) error { return run(ctx, b.Connect(service)) })
	d.background(func(ctx context.Context) error {
		return d.orchestrator.Consume(ctx, roles.ConsumerResults, func(_ context.Context, m *bus.Message) error {
			d.results <- m
			return nil
		}, bus.ConsumeOptions{Workers: 1})
	})
	return d
}

// background runs f until the test ends, and waits for it.
func (d *Desk) background(f func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	d.tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			d.tb.Errorf("ended with %v", err)
		}
	})
}

// Contract is a valid contract of the specialist, with the tools the manifest
// grants it.
func (d *Desk) Contract(slice amendsv1.Slice) *amendsv1.TaskContract {
	role, _ := d.Broker.Manifest().Role(d.service)
	until := timestamppb.New(time.Now().Add(time.Minute))
	return &amendsv1.TaskContract{
		Source: string(roles.Orchestrator), Target: string(d.service), Slice: slice, StateVersion: 2,
		Owner: string(d.service), FinalOwner: string(roles.Orchestrator), PermittedTools: role.Tools,
		Scope:   &amendsv1.Scope{Tenant: Tenant, CustomerId: Customer, OrderId: Order},
		Expires: until, LeaseUntil: until, Budget: &amendsv1.Budget{Actions: 16}, DuplicateKey: "task-8472",
		Completion: "done", ReturnTo: string(roles.Orchestrator), OnTimeout: "again", HopLimit: 1,
	}
}

// Assign sends a task and gives its envelope. edit may change it first.
func (d *Desk) Assign(a *amendsv1.TaskAssign, edit ...func(*amendsv1.Envelope)) *amendsv1.Envelope {
	d.tb.Helper()
	n := strconv.FormatInt(d.tasks.Add(1), 10)
	now := time.Now()
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(now, d.tb.Name(), n), CaseId: Case, Tenant: Tenant, RequestId: Case,
		TaskId: "task-8472-" + n, ParentTaskId: "task-8472-root", Sender: string(roles.Orchestrator), Recipient: string(d.service),
		CustomerId: Customer, Attempt: 1, IdempotencyKey: "task-8472-" + n + ":attempt-1", BasedOnVersion: 2, Hop: 1,
		TraceId: "4bf92f3577b34da6a3ce929d0e0e4736", Deadline: timestamppb.New(now.Add(time.Minute)),
	}
	for _, e := range edit {
		e(env)
	}
	if _, err := d.orchestrator.Send(d.tb.Context(), subject.Task(string(d.service), env.GetTenant(), env.GetCaseId()), env, a); err != nil {
		d.tb.Fatal(err)
	}
	return env
}

// Resend publishes bytes on the specialist's task subject.
func (d *Desk) Resend(data []byte) {
	d.tb.Helper()
	if _, err := d.orchestrator.Publish(d.tb.Context(), subject.Task(string(d.service), Tenant, Case), data); err != nil {
		d.tb.Fatal(err)
	}
}

// Result gives the next answer of the specialist.
func (d *Desk) Result() *bus.Message {
	d.tb.Helper()
	select {
	case m := <-d.results:
		return m
	case <-time.After(patience):
		d.tb.Fatal("no result")
		return nil
	}
}

// Answer gives the next answer as a message of a type.
func Answer[T any](d *Desk) T {
	d.tb.Helper()
	m := d.Result()
	got, ok := m.Payload.(T)
	if !ok {
		d.tb.Fatalf("answer %T: %v", m.Payload, m.Payload)
	}
	return got
}
