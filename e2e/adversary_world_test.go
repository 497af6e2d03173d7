package e2e_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// otherTenant has orders at the provider and no approver in common with the
// trial tenant.
const otherTenant = "other-co"

// siege is a running desk and somebody with stolen broker credentials. What he
// can reach is the broker; approvers' keys and the registry file he has not.
type siege struct {
	*world
	clock *deskclock.Clock
	// keys are approvers' own, by the name of the key.
	keys    map[string]approval.Key25519
	thieves map[roles.Service]*thief
	judge   judge

	mu       sync.Mutex
	cases    int
	answers  map[string][]*amendsv1.Envelope // of the executor, by task
	deadly   map[string]string               // reasons of dead letters, by case
	attempts []outcome
}

// outcome is a row of the table that is printed.
type outcome struct{ as, attack, got, want string }

// besiege starts a desk whose approver registry also has people who may not.
func besiege(t *testing.T) *siege {
	t.Helper()
	s := newSiege()
	dir := t.TempDir()
	s.people(t, dir)
	s.world = start(t, allinone.Options{Dir: dir, NoSync: true, Clock: s.clock})
	s.listen()
	return s
}

func newSiege() *siege {
	s := &siege{
		clock: deskclock.New(time.Now(), time.Now), keys: map[string]approval.Key25519{}, thieves: map[roles.Service]*thief{},
		answers: map[string][]*amendsv1.Envelope{}, deadly: map[string]string{},
	}
	s.clock.Run()
	return s
}

// listen keeps what the executor answers and what it gives up.
func (s *siege) listen() {
	s.t.Helper()
	s.watch("result.refund-executor.>", roles.StreamResults, func(data []byte) {
		env := &amendsv1.Envelope{}
		if err := proto.Unmarshal(data, env); err == nil {
			s.answers[env.GetTaskId()] = append(s.answers[env.GetTaskId()], env)
		}
	})
	s.watch("dead.refund-executor.>", roles.StreamDeadLetters, func(data []byte) {
		d := &amendsv1.DeadLetter{}
		if err := proto.Unmarshal(data, d); err == nil {
			s.deadly[d.GetCaseId()] = d.GetReason()
		}
	})
}

// people writes key files and registry before the desk would make its own.
func (s *siege) people(t *testing.T, dir string) {
	t.Helper()
	at := filepath.Join(dir, "approvers")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	one := func(who, id string, roles, tenants []string, minor int64, edit func(*approval.PublicKey)) approval.Approver {
		k, err := approval.NewKey(who, id, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		s.keys[id] = k
		entry := k.PublicEntry(now.Add(-60 * 24 * time.Hour))
		if edit != nil {
			edit(&entry)
		}
		return approval.Approver{
			ID: who, Roles: roles, Tenants: tenants, Limits: []approval.Limit{{Currency: "INR", Minor: minor}, {Currency: "JPY", Minor: 1_000_000}},
			Keys: []approval.PublicKey{entry},
		}
	}
	approver, all := []string{approval.RoleApprover}, []string{allinone.Tenant}
	maya := one(allinone.Approver, "maya-1", approver, all, 100_000_000, nil)
	for id, edit := range map[string]func(*approval.PublicKey){
		"maya-rotated": func(k *approval.PublicKey) { k.NotAfter = now.Add(-time.Hour) },
		"maya-revoked": func(k *approval.PublicKey) { k.Revoked = true },
		"maya-next":    func(k *approval.PublicKey) { k.NotBefore = now.Add(30 * 24 * time.Hour) },
	} {
		maya.Keys = append(maya.Keys, one(allinone.Approver, id, approver, all, 0, edit).Keys...)
	}
	people := []approval.Approver{
		maya, one(allinone.SecondApprover, "ravi-1", approver, all, 100_000_000, nil),
		one(allinone.StaffMember, "sam-1", []string{approval.RoleCustodian}, all, 100_000_000, nil),
		one("nora", "nora-1", approver, []string{otherTenant}, 100_000_000, nil),
		one("lena", "lena-1", approver, all, 150_000, nil),
		one("dara", "dara-1", []string{approval.RoleApprover, approval.RoleCustodian}, all, 100_000_000, nil),
	}
	r, err := approval.NewRegistry("siege-1", people...)
	if err != nil {
		t.Fatal(err)
	}
	file, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"registry.yaml": file}
	for who, id := range map[string]string{allinone.Approver: "maya-1", allinone.SecondApprover: "ravi-1", allinone.StaffMember: "sam-1"} {
		if files[who+".pem"], err = s.keys[id].Marshal(); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// watch reads a stream beside the broker while the test runs.
func (s *siege) watch(filter, stream string, keep func(data []byte)) {
	s.t.Helper()
	js, done, err := s.Inspect()
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := js.OrderedConsumer(s.ctx, stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{filter}})
	if err != nil {
		s.t.Fatal(err)
	}
	reading, err := c.Consume(func(m jetstream.Msg) {
		s.mu.Lock()
		defer s.mu.Unlock()
		keep(m.Data())
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { reading.Stop(); done() })
}

// await polls until cond holds, under the lock.
func (s *siege) await(what string, cond func() bool) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		ok := cond()
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// paid loads an order that was paid several times over; each payment settled.
func (s *siege) paid(order string, minor int64, payments int, edit ...func(*sandbox.Ledger)) {
	s.t.Helper()
	amounts := make([]int64, payments)
	for i := range amounts {
		amounts[i] = minor
	}
	b := newBook(order, minor, "INR", 2, amounts...)
	for _, e := range edit {
		e(&b.Ledger)
	}
	if err := s.Provider.Load(s.ctx, b.Ledger); err != nil {
		s.t.Fatal(err)
	}
}

// fresh gives a name that no attempt has used, for order and case.
func (s *siege) fresh() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cases++
	return fmt.Sprintf("adv%d", s.cases)
}

// wants is an action of case req-<order>: payment b of the order in whole, or
// what the names and amounts say.
func (s *siege) wants(order string, minor int64, payments ...string) *amendsv1.ActionRecord {
	return s.wantsAt(s.clock.Now(), order, minor, payments...)
}

func (*siege) wantsAt(now time.Time, order string, minor int64, payments ...string) *amendsv1.ActionRecord {
	a := &amendsv1.ActionRecord{
		Tenant: allinone.Tenant, CaseId: "req-" + order, OrderId: order, CaseVersion: 5, Proposal: 1, EvidenceSha256: strings.Repeat("ab", 32),
		Created: timestamppb.New(now), Expires: timestamppb.New(now.Add(30 * time.Minute)),
	}
	if len(payments) == 0 {
		payments = []string{"b"}
	}
	for _, p := range payments {
		a.Refunds = append(a.Refunds, &amendsv1.ActionRefund{PaymentId: "pay_" + order + "_" + p, Amount: money.New(minor, "INR"), Kind: approval.KindDuplicate})
	}
	return rekey(a)
}

// rekey gives an action's refunds the keys of its case.
func rekey(a *amendsv1.ActionRecord) *amendsv1.ActionRecord {
	for _, r := range a.GetRefunds() {
		r.IdempotencyKey = approval.Key(a.GetCaseId(), r.GetPaymentId())
	}
	return a
}

// decision is what key says of exactly this action. Who holds an approver's
// valid key and approves is a real approver: the judge is told.
func (s *siege) decision(key string, a *amendsv1.ActionRecord, n int, edit ...func(*amendsv1.SignedDecision)) *amendsv1.SignedDecision {
	s.t.Helper()
	sum, err := approval.ActionSHA256(a)
	if err != nil {
		s.t.Fatal(err)
	}
	d := &amendsv1.SignedDecision{
		ApprovalId: approval.ID(a.GetCaseId(), n), Verdict: amendsv1.Verdict_VERDICT_APPROVE, Tenant: a.GetTenant(), CaseId: a.GetCaseId(),
		ActionSha256: sum, SignedAt: a.GetCreated(), Expires: a.GetExpires(),
	}
	for _, e := range edit {
		e(d)
	}
	k := s.keys[key]
	if err := approval.Sign(k, d); err != nil {
		s.t.Fatal(err)
	}
	if d.GetVerdict() == amendsv1.Verdict_VERDICT_APPROVE && d.GetActionSha256() == sum && entitled(key, a) && a.GetExpires().AsTime().After(s.clock.Now()) {
		s.judge.signed(k.ApproverID, a)
	}
	return d
}

// entitled says whose approval of an action is one, by the registry's intent.
func entitled(key string, a *amendsv1.ActionRecord) bool {
	total, err := approval.Total(a)
	if err != nil {
		return false
	}
	switch key {
	case "maya-1", "ravi-1":
		return a.GetTenant() == allinone.Tenant
	case "nora-1":
		return a.GetTenant() == otherTenant
	case "dara-1":
		return a.GetTenant() == allinone.Tenant && a.GetProposedBy() != "dara"
	case "lena-1":
		return a.GetTenant() == allinone.Tenant && total.GetMinor() <= 150_000
	default:
		return false
	}
}

// taskOf wraps an order in the contract and envelope the orchestrator would use.
func (s *siege) taskOf(a *amendsv1.ActionRecord, assign *amendsv1.TaskAssign) (*amendsv1.Envelope, *amendsv1.TaskAssign) {
	until := timestamppb.New(s.clock.Now().Add(time.Hour))
	slice := amendsv1.Slice_SLICE_EXECUTE
	switch assign.GetInput().(type) {
	case *amendsv1.TaskAssign_Cancel:
		slice = amendsv1.Slice_SLICE_CANCEL
	case *amendsv1.TaskAssign_Confirm:
		slice = amendsv1.Slice_SLICE_CONFIRM
	case *amendsv1.TaskAssign_Settle:
		slice = amendsv1.Slice_SLICE_SETTLE
	}
	assign.Contract = &amendsv1.TaskContract{
		Source: string(roles.Orchestrator), Target: string(roles.RefundExecutor), Slice: slice, StateVersion: 6,
		Owner: string(roles.RefundExecutor), FinalOwner: string(roles.Orchestrator),
		Scope:   &amendsv1.Scope{Tenant: a.GetTenant(), CustomerId: allinone.Customer, OrderId: a.GetOrderId()},
		Expires: until, LeaseUntil: until, Budget: &amendsv1.Budget{Effects: 1}, DuplicateKey: "execute-1",
		Completion: "an outcome for every refund", ReturnTo: string(roles.Orchestrator), OnTimeout: "ask again", HopLimit: 1,
	}
	id := "task-" + s.fresh()
	return &amendsv1.Envelope{
		MessageId: ident.Derive(s.clock.Now(), id), CaseId: a.GetCaseId(), Tenant: a.GetTenant(), RequestId: a.GetCaseId(), TaskId: id,
		Sender: string(roles.Orchestrator), Recipient: string(roles.RefundExecutor), CustomerId: allinone.Customer,
		Type: "task.assign", SchemaVersion: "1.1", Attempt: 1, IdempotencyKey: "execute-1", BasedOnVersion: 6, TraceId: "tr-7f3a91", Hop: 1,
	}, assign
}

func executing(a *amendsv1.ActionRecord, approvals ...*amendsv1.SignedDecision) *amendsv1.TaskAssign {
	return &amendsv1.TaskAssign{Input: &amendsv1.TaskAssign_Execute{Execute: &amendsv1.ExecuteOrder{Action: a, Approvals: approvals}}}
}

// order sends the executor a task on the orchestrator's credential, as bytes
// that nothing of the desk has looked at, and gives what came of it.
func (s *siege) order(a *amendsv1.ActionRecord, approvals ...*amendsv1.SignedDecision) string {
	s.t.Helper()
	return s.ask(s.taskOf(a, executing(a, approvals...)))
}

func (s *siege) ask(env *amendsv1.Envelope, assign *amendsv1.TaskAssign) string {
	s.t.Helper()
	return s.askRaw(env, must(assign))
}

func (s *siege) askRaw(env *amendsv1.Envelope, payload []byte) string {
	s.t.Helper()
	return s.answer(s.assign(env, payload))
}

// assign sends a task and gives its id.
func (s *siege) assign(env *amendsv1.Envelope, payload []byte) (task, caseID string) {
	s.t.Helper()
	env.Payload = payload
	s.steal(roles.Orchestrator).put(subject.Task(string(roles.RefundExecutor), env.GetTenant(), env.GetCaseId()), must(env))
	return env.GetTaskId(), env.GetCaseId()
}

// answer waits for what the executor said of a task, or wrote of it to the
// dead letters.
func (s *siege) answer(task, caseID string) (got string) {
	s.t.Helper()
	s.await("an answer to "+task, func() bool {
		if all := s.answers[task]; len(all) > 0 {
			got = said(all[len(all)-1])
		} else if reason := s.deadly[caseID]; reason != "" {
			got = reason
		}
		return got != ""
	})
	return got
}

// said is an answer's reason code, or its class where it has none.
func said(env *amendsv1.Envelope) string {
	m, err := payload(env)
	if err != nil {
		return err.Error()
	}
	switch m := m.(type) {
	case *amendsv1.EffectResult:
		if m.GetReason() != "" {
			return m.GetReason()
		}
		return strings.ToLower(strings.TrimPrefix(m.GetClass().String(), "EFFECT_CLASS_"))
	case *amendsv1.TaskError:
		return m.GetReason()
	default:
		return env.GetType()
	}
}
