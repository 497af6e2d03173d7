package executor

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/effectstore"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

const (
	acknowledged = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
	refused      = amendsv1.EffectClass_EFFECT_CLASS_REFUSED
	noEffect     = amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT
	unknown      = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN
	held         = amendsv1.EffectClass_EFFECT_CLASS_HELD
	notBegun     = amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN
	undecidable  = amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE
	evidenceGap  = amendsv1.EffectClass_EFFECT_CLASS_EVIDENCE_GAP

	firm   = providertest.Tenant
	theirs = "8472"
	ourKey = "refund:req-8472:pay_8472_b"
)

// solo is the executor without a bus: its own code on a clock that only the
// test and its own waiting move, a store and a provider in memory.
type solo struct {
	*executor
	t        *testing.T
	clock    time.Time
	store    *effectstore.Memory
	books    *providertest.Memory
	maya     approval.Key25519
	registry *approval.Registry
	fault    func(op effectstore.Op, subj string) error
}

// alone gives an executor with an order that was paid twice. edit changes what
// it is made of.
func alone(t *testing.T, promises provider.Promises, edit ...func(*Config, *parts)) *solo {
	t.Helper()
	s := &solo{t: t, clock: time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC), fault: func(effectstore.Op, string) error { return nil }}
	now := func() time.Time { return s.clock }
	s.store = effectstore.NewMemory(effectstore.WithClock(now), effectstore.WithFault(func(op effectstore.Op, subj string) error { return s.fault(op, subj) }))
	s.books = providertest.NewMemory(now, promises)
	s.books.Load(firm, providertest.Paid(theirs, money.New(200000, "INR"), 2, s.clock))
	var err error
	if s.maya, err = approval.NewKey("maya", "maya-1", rand.Reader); err != nil {
		t.Fatal(err)
	}
	s.registry, err = approval.NewRegistry("1", approval.Approver{
		ID: "maya", Roles: []string{approval.RoleApprover, approval.RoleCustodian}, Tenants: []string{firm},
		Limits: []approval.Limit{{Currency: "INR", Minor: 100_000_000}}, Keys: []approval.PublicKey{s.maya.PublicEntry(s.clock.AddDate(0, 0, -1))},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg, p := Defaults(), parts{
		store: s.store, provider: s.books, now: now, approvers: func() (*approval.Registry, error) { return s.registry, nil },
		wait: func(_ context.Context, d time.Duration) error { s.clock = s.clock.Add(d); return nil },
	}
	for _, e := range edit {
		e(&cfg, &p)
	}
	s.executor = assemble(cfg, p)
	return s
}

var (
	keeps  = provider.Promises{KeyWindow: 24 * time.Hour, CallTimeout: 5 * time.Second}
	noKeys = provider.Promises{CallTimeout: 5 * time.Second}
)

// action is the founding action, proposed now for the nth time.
func (s *solo) action(n uint32) *amendsv1.ActionRecord {
	a := &amendsv1.ActionRecord{
		Tenant: firm, CaseId: "req-8472", OrderId: theirs, CaseVersion: 5, Proposal: n, EvidenceSha256: strings.Repeat("ab", 32),
		Created: timestamppb.New(s.clock), Expires: timestamppb.New(s.clock.Add(30 * time.Minute)),
	}
	a.Refunds = []*amendsv1.ActionRefund{{PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Kind: approval.KindDuplicate, IdempotencyKey: ourKey}}
	return a
}

// execute asks for an action, approved by maya.
func (s *solo) execute(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
	s.t.Helper()
	sum, err := approval.ActionSHA256(a)
	if err != nil {
		s.t.Fatal(err)
	}
	d := &amendsv1.SignedDecision{
		ApprovalId: approval.ID(a.GetCaseId(), int(a.GetProposal())), Verdict: amendsv1.Verdict_VERDICT_APPROVE, Tenant: firm, CaseId: a.GetCaseId(),
		ActionSha256: sum, SignedAt: a.GetCreated(), Expires: a.GetExpires(),
	}
	if err := approval.Sign(s.maya, d); err != nil {
		s.t.Fatal(err)
	}
	return assign(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Execute{Execute: &amendsv1.ExecuteOrder{Action: a, Approvals: []*amendsv1.SignedDecision{d}}}}, amendsv1.Slice_SLICE_EXECUTE)
}

func withdraw(a *amendsv1.ActionRecord) *amendsv1.TaskAssign {
	return assign(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Cancel{Cancel: &amendsv1.CancelOrder{Action: a, CancelRevision: 1}}}, amendsv1.Slice_SLICE_CANCEL)
}

func confirms(a *amendsv1.ActionRecord, events ...*amendsv1.ProviderEvent) *amendsv1.TaskAssign {
	return assign(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Confirm{Confirm: &amendsv1.ConfirmOrder{Action: a, Events: events}}}, amendsv1.Slice_SLICE_CONFIRM)
}

// settles gives maya's signed answer to what became of the action's refund.
func (s *solo) settles(a *amendsv1.ActionRecord, refundID string, edit ...func(*amendsv1.CustodyDecision)) *amendsv1.TaskAssign {
	s.t.Helper()
	d := &amendsv1.CustodyDecision{
		Tenant: firm, CaseId: a.GetCaseId(), Step: amendsv1.CustodyStep_CUSTODY_STEP_SETTLE, PacketSha256: strings.Repeat("cd", 32),
		SignedAt: timestamppb.New(s.clock), Reason: "looked in the provider's console",
		Settlements: []*amendsv1.Settlement{{IdempotencyKey: ourKey, RefundId: refundID}},
	}
	for _, e := range edit {
		e(d)
	}
	if err := approval.SignCustody(s.maya, d); err != nil {
		s.t.Fatal(err)
	}
	return assign(a, &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Settle{Settle: &amendsv1.SettleOrder{Action: a, Decision: d}}}, amendsv1.Slice_SLICE_SETTLE)
}

func assign(a *amendsv1.ActionRecord, out *amendsv1.TaskAssign, slice amendsv1.Slice) *amendsv1.TaskAssign {
	out.Contract = &amendsv1.TaskContract{
		Source: string(roles.Orchestrator), Target: string(roles.RefundExecutor), Slice: slice,
		Scope: &amendsv1.Scope{Tenant: a.GetTenant(), CustomerId: "cust_5519", OrderId: a.GetOrderId()},
	}
	return out
}

// try works on one task, as handle does after the bus and before the answer.
func (s *solo) try(task *amendsv1.TaskAssign) (*amendsv1.EffectResult, error) {
	s.t.Helper()
	task.Contract.Expires = timestamppb.New(s.clock.Add(time.Hour))
	checked, reason, err := read(&bus.Message{
		Envelope: &amendsv1.Envelope{MessageId: ident.Derive(s.clock, "task"), CaseId: "req-8472", Tenant: firm, CustomerId: "cust_5519"},
		Payload:  proto.CloneOf(task), Parts: subject.Parts{Tenant: firm, CaseID: "req-8472"}, Stored: bus.Stored{Time: s.clock},
	})
	if err != nil {
		s.t.Fatalf("%s: %v", reason, err)
	}
	return s.act(s.t.Context(), checked)
}

// ask works on one task that has an answer.
func (s *solo) ask(task *amendsv1.TaskAssign) *amendsv1.EffectResult {
	s.t.Helper()
	res, err := s.try(task)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func (s *solo) want(what string, res *amendsv1.EffectResult, class amendsv1.EffectClass, reason string) {
	s.t.Helper()
	if res.GetClass() != class || res.GetReason() != reason {
		s.t.Errorf("%s: %v %q, want %v %q", what, res.GetClass(), res.GetReason(), class, reason)
	}
}

// calls fails unless the provider saw so many calls, all with the same key and
// the same bytes (B07).
func (s *solo) calls(n int) {
	s.t.Helper()
	all := s.books.Calls()
	if len(all) != n {
		s.t.Errorf("%d calls, want %d", len(all), n)
	}
	for _, c := range all {
		if c.Key != all[0].Key || c.Body != all[0].Body {
			s.t.Errorf("call %+v differs from %+v", c, all[0])
		}
	}
}

// refunds gives what is on the order at the provider.
func (s *solo) refunds() []*amendsv1.Refund {
	s.t.Helper()
	o, err := s.books.ReadOrder(s.t.Context(), firm, theirs)
	if err != nil {
		s.t.Fatal(err)
	}
	return o.Refunds
}

func (s *solo) count(n int) {
	s.t.Helper()
	if all := s.refunds(); len(all) != n {
		s.t.Errorf("refunds %v, want %d", all, n)
	}
}

// intent gives the one intent of the order's entry.
func (s *solo) intent() *amendsv1.EffectIntent {
	s.t.Helper()
	e, _, _, err := s.store.Entry(s.t.Context(), firm, theirs)
	if err != nil || len(e.GetIntents()) != 1 {
		s.t.Fatalf("entry %v, %v", e, err)
	}
	return e.GetIntents()[0]
}

// doubt brings the founding action into doubt: its call ends in a fault.
func (s *solo) doubt(f providertest.Fault) *amendsv1.TaskAssign {
	s.t.Helper()
	task := s.execute(s.action(1))
	s.books.SetFault(func(providertest.Call) providertest.Fault { return f })
	if res := s.ask(task); res.GetClass() != unknown {
		s.t.Fatalf("not in doubt: %v", res)
	}
	s.books.SetFault(nil)
	return task
}

// stop sets or lifts the stop of everything.
func (s *solo) stop(on bool) {
	s.t.Helper()
	data, err := proto.Marshal(&amendsv1.StopSwitch{Stopped: on, Scope: subject.StopAll, By: "ops", Reason: "test", At: timestamppb.New(s.clock)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.store.SetStop(subject.StopAll, data)
}

// provable moves the clock to where no call can be under way any more.
func (s *solo) provable() { s.clock = s.clock.Add(time.Minute) }

// byHand makes a refund in the provider's own console.
func (s *solo) byHand(payment, reference string, minor int64) string {
	s.t.Helper()
	id, err := s.books.ByHand(provider.Request{Tenant: firm, OrderID: theirs, PaymentID: "pay_8472" + payment, Amount: money.New(minor, "INR"), Reference: reference})
	if err != nil {
		s.t.Fatal(fmt.Errorf("by hand: %w", err))
	}
	return id
}
