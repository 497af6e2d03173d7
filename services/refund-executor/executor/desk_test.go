package executor_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/bus/bustest"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/executor"
)

const (
	acknowledged = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
	refused      = amendsv1.EffectClass_EFFECT_CLASS_REFUSED
	noEffect     = amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT
	unknown      = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN
	held         = amendsv1.EffectClass_EFFECT_CLASS_HELD
	notBegun     = amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN
	undecidable  = amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE
	gap          = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP

	tenant = "acme-in"
)

// desk is the executor's world: the real broker, the real sandbox behind
// a front that counts and disturbs, the orchestrator's and the console's own
// connections, and two approvers.
type desk struct {
	t          *testing.T
	broker     *bustest.Broker
	provider   *sandboxtest.Sandbox
	front      *front
	asks       *bus.Conn
	console    *bus.Conn
	reads      *bus.Conn
	cfg        executor.Config
	maya, ravi approval.Key25519

	// clock is the desk's time, the broker's included.
	clock *deskclock.Clock

	mu      sync.Mutex
	tasks   int
	results map[string]*bus.Message
}

// open starts everything but the executor.
func open(t *testing.T) *desk {
	t.Helper()
	ms := time.Millisecond
	d := &desk{t: t, results: map[string]*bus.Message{}, clock: deskclock.New(time.Now(), time.Now)}
	d.clock.Run()
	d.broker = bustest.Desk(t, bustest.Options{Manifest: bustest.Quick(2*time.Second, 20*ms, 20*ms, 20*ms, 20*ms), Clock: d.clock})
	d.provider = sandboxtest.Start(t, func(c *sandbox.Config) { c.Now = time.Now })
	d.front = newFront(t, d.provider.URL)
	d.asks, d.console, d.reads = d.broker.Connect(roles.Orchestrator), d.broker.Connect(roles.Console), d.broker.Connect(roles.RefundExecutor)

	dir := t.TempDir()
	d.maya, d.ravi = person(t, "maya"), person(t, "ravi")
	registry, err := approval.NewRegistry("1", approver(d.maya), approver(d.ravi))
	if err != nil {
		t.Fatal(err)
	}
	file, err := registry.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	d.cfg = executor.Defaults()
	d.cfg.Payments.URL = d.front.URL
	d.cfg.Payments.KeyFile = write(t, dir, "key", []byte(sandboxtest.RefundWriteKey))
	d.cfg.Payments.Timeout = 2 * time.Second
	d.cfg.ApproverRegistry = write(t, dir, "approvers.yaml", file)

	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		_ = d.asks.Consume(ctx, roles.ConsumerResults, d.keep, bus.ConsumeOptions{}) // ends with the test
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return d
}

// later moves the desk's time on.
func (d *desk) later(by time.Duration) { d.clock.AdvanceTo(d.clock.Now().Add(by)) }

// renew gives a task a contract of now.
func (d *desk) renew(assign *amendsv1.TaskAssign) *amendsv1.TaskAssign {
	n := proto.CloneOf(assign)
	n.Contract.Expires = timestamppb.New(d.clock.Now().Add(time.Hour))
	n.Contract.LeaseUntil = n.GetContract().GetExpires()
	return n
}

func person(t *testing.T, id string) approval.Key25519 {
	t.Helper()
	k, err := approval.NewKey(id, id+"-1", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func approver(k approval.Key25519) approval.Approver {
	return approval.Approver{
		ID: k.ApproverID, Roles: []string{approval.RoleApprover, approval.RoleCustodian}, Tenants: []string{tenant},
		Limits: []approval.Limit{{Currency: "INR", Minor: 100_000_000}, {Currency: "JPY", Minor: 100_000_000}},
		Keys:   []approval.PublicKey{k.PublicEntry(time.Now().Add(-24 * time.Hour))},
	}
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (d *desk) keep(_ context.Context, m *bus.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.results[m.Envelope.GetTaskId()] = m
	return nil
}

// run starts one executor on the executor's own credential; the function it
// gives stops it and waits. edit changes its configuration and collaborators.
func (d *desk) run(edit ...func(*executor.Config, *executor.Deps)) (stop func()) {
	d.t.Helper()
	return d.runThrough(func(r executor.Records) executor.Records { return r }, edit...)
}

func (d *desk) runThrough(between func(executor.Records) executor.Records, edit ...func(*executor.Config, *executor.Deps)) (stop func()) {
	d.t.Helper()
	cfg, deps := d.cfg, executor.Deps{Bus: d.broker.Connect(roles.RefundExecutor), Now: d.clock.Now}
	for _, e := range edit {
		e(&cfg, &deps)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := executor.RunThrough(ctx, cfg, deps, between); err != nil {
			d.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	d.t.Cleanup(stop)
	return stop
}

// order puts an order on the ledger that was paid several times over, each
// payment settled: pay_<order>_a, _b, ….
func (d *desk) order(id string, minor int64, payments int, edit ...func(*sandbox.Ledger)) {
	d.t.Helper()
	day := func(n int) *time.Time { t := time.Now().UTC().AddDate(0, 0, -n); return &t }
	l := sandbox.Ledger{Orders: []sandbox.Order{{OrderID: id, Tenant: tenant, CustomerID: "cust_5519", TotalMinor: minor, Currency: "INR", PlacedAt: *day(3)}}}
	for i := range payments {
		l.Captures = append(l.Captures, sandbox.Capture{
			PaymentID: "pay_" + id + "_" + string(rune('a'+i)), OrderID: id, Tenant: tenant, AmountMinor: minor, Currency: "INR",
			Status: "settled", Captured: true, Settled: true, CapturedAt: day(3), SettledAt: day(2), Method: "card_visa_4417",
		})
	}
	for _, e := range edit {
		e(&l)
	}
	d.provider.Load(d.t, l)
}

// refund asks for the refund of a payment of an order, in whole.
type refund struct {
	payment string
	minor   int64
}

// action is an action record of case req-<order>, created now.
func action(order string, refunds ...refund) *amendsv1.ActionRecord {
	now := time.Now()
	a := &amendsv1.ActionRecord{
		Tenant: tenant, CaseId: "req-" + order, OrderId: order, CaseVersion: 5, Proposal: 1, EvidenceSha256: strings.Repeat("ab", 32),
		Created: timestamppb.New(now), Expires: timestamppb.New(now.Add(30 * time.Minute)),
	}
	for _, r := range refunds {
		a.Refunds = append(a.Refunds, &amendsv1.ActionRefund{PaymentId: r.payment, Amount: money.New(r.minor, "INR"), Kind: "duplicate_capture"})
	}
	return ofCase(a, a.GetCaseId())
}

// ofCase makes an action that of a case.
func ofCase(a *amendsv1.ActionRecord, caseID string) *amendsv1.ActionRecord {
	a.CaseId = caseID
	for _, r := range a.GetRefunds() {
		r.IdempotencyKey = approval.Key(caseID, r.GetPaymentId())
	}
	return a
}

// duplicate is the founding action on an order: its second payment in whole.
func duplicate(order string, minor int64) *amendsv1.ActionRecord {
	return action(order, refund{"pay_" + order + "_b", minor})
}

// sign gives an approver's decision on exactly this action.
func (d *desk) sign(k approval.Key25519, a *amendsv1.ActionRecord, n int, edit ...func(*amendsv1.SignedDecision)) *amendsv1.SignedDecision {
	d.t.Helper()
	sum, err := approval.ActionSHA256(a)
	if err != nil {
		d.t.Fatal(err)
	}
	s := &amendsv1.SignedDecision{
		ApprovalId: approval.ID(a.GetCaseId(), n), Verdict: amendsv1.Verdict_VERDICT_APPROVE, Tenant: a.GetTenant(), CaseId: a.GetCaseId(),
		ActionSha256: sum, SignedAt: a.GetCreated(), Expires: a.GetExpires(),
	}
	for _, e := range edit {
		e(s)
	}
	if err := approval.Sign(k, s); err != nil {
		d.t.Fatal(err)
	}
	return s
}

func execute(a *amendsv1.ActionRecord, approvals ...*amendsv1.SignedDecision) *amendsv1.TaskAssign {
	return contract(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Execute{Execute: &amendsv1.ExecuteOrder{Action: a, Approvals: approvals}}}, amendsv1.Slice_SLICE_EXECUTE)
}

func cancel(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
	return contract(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Cancel{Cancel: &amendsv1.CancelOrder{Action: a, CancelRevision: 1}}}, amendsv1.Slice_SLICE_CANCEL)
}

func confirm(a *amendsv1.ActionRecord, events ...*amendsv1.ProviderEvent) *amendsv1.TaskAssign {
	return contract(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Confirm{Confirm: &amendsv1.ConfirmOrder{Action: a, Events: events}}}, amendsv1.Slice_SLICE_CONFIRM)
}

// settle hands over maya's signed answer to what became of an action's refunds.
func (d *desk) settle(a *amendsv1.ActionRecord, ids ...string) *amendsv1.TaskAssign {
	d.t.Helper()
	c := &amendsv1.CustodyDecision{
		Tenant: tenant, CaseId: a.GetCaseId(), Step: amendsv1.CustodyStep_CUSTODY_STEP_SETTLE, PacketSha256: strings.Repeat("cd", 32), SignedAt: timestamppb.Now(),
	}
	for i, id := range ids {
		c.Settlements = append(c.Settlements, &amendsv1.Settlement{IdempotencyKey: a.GetRefunds()[i].GetIdempotencyKey(), RefundId: id})
	}
	if err := approval.SignCustody(d.maya, c); err != nil {
		d.t.Fatal(err)
	}
	return contract(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Settle{Settle: &amendsv1.SettleOrder{Action: a, Decision: c}}}, amendsv1.Slice_SLICE_SETTLE)
}

func contract(a *amendsv1.ActionRecord, out *amendsv1.TaskAssign, slice amendsv1.Slice) *amendsv1.TaskAssign {
	deadline := timestamppb.New(time.Now().Add(time.Hour))
	out.Contract = &amendsv1.TaskContract{
		Source: string(roles.Orchestrator), Target: string(roles.RefundExecutor), Slice: slice, StateVersion: 6,
		Owner: string(roles.RefundExecutor), FinalOwner: string(roles.Orchestrator),
		Scope:   &amendsv1.Scope{Tenant: a.GetTenant(), CustomerId: "cust_5519", OrderId: a.GetOrderId()},
		Expires: deadline, LeaseUntil: deadline, Budget: &amendsv1.Budget{Effects: 1}, DuplicateKey: "execute-1",
		Completion: "an outcome for every refund", ReturnTo: string(roles.Orchestrator), OnTimeout: "ask again", HopLimit: 1,
	}
	return out
}

// send gives the executor a task and returns the task's id.
func (d *desk) send(assign *amendsv1.TaskAssign) string {
	d.t.Helper()
	d.mu.Lock()
	d.tasks++
	id := fmt.Sprintf("task-%d", d.tasks)
	d.mu.Unlock()
	d.resend(assign, id)
	return id
}

// resend sends a task once more: the same message.
func (d *desk) resend(assign *amendsv1.TaskAssign, id string) {
	d.t.Helper()
	caseID := assign.GetExecute().GetAction().GetCaseId() + assign.GetCancel().GetAction().GetCaseId()
	if caseID == "" {
		caseID = "req-" + assign.GetContract().GetScope().GetOrderId()
	}
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(time.Unix(1, 0), id), CaseId: caseID, Tenant: tenant, RequestId: caseID,
		TaskId: id, Sender: string(roles.Orchestrator), Recipient: string(roles.RefundExecutor), CustomerId: "cust_5519",
		Attempt: 1, IdempotencyKey: "execute-1", BasedOnVersion: 6, TraceId: "tr-7f3a91", Hop: 1,
	}
	if _, err := d.asks.Send(d.t.Context(), subject.Task(string(roles.RefundExecutor), tenant, caseID), env, assign); err != nil {
		d.t.Fatal(err)
	}
}

// answer waits for the answer to a task.
func (d *desk) answer(id string) proto.Message {
	d.t.Helper()
	var m *bus.Message
	bustest.Await(d.t, "an answer to the task", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		m = d.results[id]
		return m != nil
	})
	return m.Payload
}

// ask sends a task and waits for its effect result.
func (d *desk) ask(assign *amendsv1.TaskAssign) *amendsv1.EffectResult {
	d.t.Helper()
	p := d.answer(d.send(assign))
	res, ok := p.(*amendsv1.EffectResult)
	if !ok {
		d.t.Fatalf("answered %v", p)
	}
	return res
}

// expect fails unless a result has a class and a reason.
func (d *desk) expect(what string, res *amendsv1.EffectResult, class amendsv1.EffectClass, reason string) {
	d.t.Helper()
	if res.GetClass() != class || res.GetReason() != reason {
		d.t.Errorf("%s: %v %q, want %v %q", what, res.GetClass(), res.GetReason(), class, reason)
	}
}

// refunds counts what was refunded of an order at the provider.
func (d *desk) refunds(order string) (n int, minor int64) {
	d.t.Helper()
	for _, r := range d.provider.Ledger(d.t).Refunds {
		if r.OrderID == order && r.Status != "failed" {
			n++
			minor += r.AmountMinor
		}
	}
	return n, minor
}

// onlyRefund fails unless an order has exactly one refund, of an amount.
func (d *desk) onlyRefund(order string, minor int64) {
	d.t.Helper()
	if n, sum := d.refunds(order); n != 1 || sum != minor {
		d.t.Errorf("order %s has %d refunds of %d, want one of %d", order, n, sum, minor)
	}
}

func (d *desk) noRefund(order string) {
	d.t.Helper()
	if n, sum := d.refunds(order); n != 0 {
		d.t.Errorf("order %s has %d refunds of %d, want none", order, n, sum)
	}
	if calls := d.front.creates(order); len(calls) != 0 {
		d.t.Errorf("order %s: the provider was called %d times", order, len(calls))
	}
}

// entry reads an order's effect entry, nil when there is none.
func (d *desk) entry(order string) *amendsv1.EffectEntry {
	d.t.Helper()
	m, err := d.reads.Last(d.t.Context(), roles.StreamEffects, subject.Effect(tenant, order))
	if err != nil {
		return nil
	}
	e := new(amendsv1.EffectEntry)
	if err := proto.Unmarshal(m.Data, e); err != nil {
		d.t.Fatal(err)
	}
	return e
}

// stored counts the messages of a stream.
func (d *desk) stored(stream string) uint64 {
	d.t.Helper()
	s, err := d.broker.Admin().Stream(d.t.Context(), stream)
	if err != nil {
		d.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// stop sets or lifts the emergency stop, on the console's own credential.
func (d *desk) stop(scope string, stopped bool) {
	d.t.Helper()
	data, err := proto.Marshal(&amendsv1.StopSwitch{Stopped: stopped, Scope: scope, By: "ops", Reason: "test", At: timestamppb.Now()})
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.console.Publish(d.t.Context(), subject.Control(scope), data); err != nil {
		d.t.Fatal(err)
	}
}
