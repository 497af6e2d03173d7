package executor

import (
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// person is somebody who signs.
type person struct {
	id    string
	roles []string
	// limit bounds what the person may approve; until is the end of the key.
	limit int64
	until time.Time
	key   approval.Key25519
}

// staff are the people of every schedule. Ravi's key is retired on the way,
// Lee may approve little, Sam and Lee are custodians.
type staff struct {
	everybody []*person
	all       *approval.Registry
}

var people = hire()

func hire() *staff {
	approver, custodian := approval.RoleApprover, approval.RoleCustodian
	s := &staff{everybody: []*person{
		{id: "maya", roles: []string{approver}, limit: 1 << 40},
		{id: "ravi", roles: []string{approver}, limit: 1 << 40, until: dawn.Add(45 * time.Minute)},
		{id: "sam", roles: []string{approver, custodian}, limit: 1 << 40},
		{id: "lee", roles: []string{approver, custodian}, limit: 150000},
	}}
	entropy := rand.NewChaCha8([32]byte{4})
	var list []approval.Approver
	for _, p := range s.everybody {
		key, err := approval.NewKey(p.id, "k1", entropy)
		if err != nil {
			panic(err)
		}
		p.key = key
		entry := key.PublicEntry(dawn.Add(-time.Hour))
		entry.NotAfter = p.until
		a := approval.Approver{ID: p.id, Roles: p.roles, Tenants: []string{theTenant}, Keys: []approval.PublicKey{entry}}
		for _, code := range []string{"INR", "KWD", "JPY"} {
			a.Limits = append(a.Limits, approval.Limit{Currency: code, Minor: p.limit})
		}
		list = append(list, a)
	}
	registry, err := approval.NewRegistry("1", list...)
	if err != nil {
		panic(err)
	}
	s.all = registry
	return s
}

func (s *staff) registry() (*approval.Registry, error) { return s.all, nil }

func (s *staff) find(id string) *person {
	for _, p := range s.everybody {
		if p.id == id {
			return p
		}
	}
	return nil
}

// signature is what a person signed, in the judge's own books.
type signature struct {
	id      string
	by      *person
	approve bool
	action  *amendsv1.ActionRecord
}

// sign lets a person approve or deny the action a case waits for.
func (m *matter) sign(p *person, verdict amendsv1.Verdict) {
	w, a := m.w, m.rec.GetAction()
	d := &amendsv1.SignedDecision{
		ApprovalId: approval.ID(m.id, len(w.signed)+1), Verdict: verdict, Tenant: theTenant, CaseId: m.id, ActionSha256: m.rec.GetActionSha256(),
		SignedAt: timestamppb.New(w.clock), Expires: a.GetExpires(),
	}
	if err := approval.Sign(p.key, d); err != nil {
		w.breaks("WORLD", "sign: %v", err)
		return
	}
	w.signed = append(w.signed, signature{d.GetApprovalId(), p, verdict == amendsv1.Verdict_VERDICT_APPROVE, proto.CloneOf(a)})
	w.tell("%s signs %s: %s of %s, proposal %d", p.id, d.GetApprovalId(), verdict, m.id, a.GetProposal())
	m.post(roles.Console, d)
}

// approver gives who signs next: mostly somebody who may.
func (m *matter) approver() *person {
	return people.everybody[m.w.choose("approver", 8, 6, 3, 2)]
}

// custodian lets people do something with a case that they have.
func (m *matter) custodian() {
	w := m.w
	who := people.find([]string{"sam", "lee"}[w.choose("custodian", 3, 1)])
	c := m.rec.GetCustody()
	d := &amendsv1.CustodyDecision{
		Tenant: theTenant, CaseId: m.id, Step: amendsv1.CustodyStep_CUSTODY_STEP_TAKE, PacketSha256: casework.PacketSHA256(m.rec), SignedAt: timestamppb.New(w.clock),
	}
	if c.GetCustodian() == who.id && w.clock.Before(c.GetUntil().AsTime()) {
		m.decide(d)
	}
	if err := approval.SignCustody(who.key, d); err != nil {
		w.tell("%s cannot sign that: %v", who.id, err)
		return
	}
	w.tell("%s, custodian of %s: %s", who.id, m.id, approval.StepName(d.GetStep()))
	m.post(roles.Console, d)
}

// decide says what the custodian wants. What is in doubt has to be settled
// before anything else.
func (m *matter) decide(d *amendsv1.CustodyDecision) {
	if m.rec.GetOutcomeUnknown() && m.w.choose("settle", 2, 1) == 0 {
		if d.Settlements = m.settlements(); len(d.GetSettlements()) > 0 {
			d.Step = amendsv1.CustodyStep_CUSTODY_STEP_SETTLE
			return
		}
	}
	switch m.w.choose("custody step", 6, 3, 1) {
	case 0:
		d.Step = amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE
		d.Refunds = m.propose()
	case 1:
		d.Step = amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE
	default:
		d.Step = amendsv1.CustodyStep_CUSTODY_STEP_DECLINE
	}
}

// settlements answers for every refund in doubt: mostly as the provider's
// dashboard shows it.
func (m *matter) settlements() []*amendsv1.Settlement {
	all := m.w.read().Refunds
	var out []*amendsv1.Settlement
	for _, r := range m.rec.GetAction().GetRefunds() {
		if m.knows(r.GetIdempotencyKey()) {
			continue
		}
		s := &amendsv1.Settlement{IdempotencyKey: r.GetIdempotencyKey()}
		for _, have := range all {
			if have.GetReference() == r.GetIdempotencyKey() {
				s.RefundId = have.GetRefundId()
			}
		}
		switch lie := m.w.choose("mistaken", 6, 1, 1); {
		case lie == 1:
			s.RefundId = ""
		case lie == 2 && len(all) > 0:
			s.RefundId = all[m.w.pick(len(all), "which refund")].GetRefundId()
		}
		out = append(out, s)
	}
	return out
}

// knows reports whether the record says what became of a refund.
func (m *matter) knows(key string) bool {
	e := m.rec.GetEffect()
	for _, r := range e.GetRefunds() {
		if e.GetActionSha256() == m.rec.GetActionSha256() && r.GetIdempotencyKey() == key {
			return r.GetOutcome().GetRefundId() != "" || r.GetOutcome().GetClass() == amendsv1.EffectClass_EFFECT_CLASS_REFUSED
		}
	}
	return false
}

// propose names one or two refunds, whole or in part.
func (m *matter) propose() []*amendsv1.ActionRefund {
	w, captures := m.w, m.w.order.order.Captures
	first := w.pick(len(captures), "refund of")
	var out []*amendsv1.ActionRefund
	for i := first; i < len(captures) && len(out) < 1+w.choose("refunds", 2, 1); i++ {
		c := captures[i]
		minor := c.GetAmount().GetMinor() / []int64{1, 2, 4}[w.choose("part", 2, 2, 1)]
		kind := []string{approval.KindDuplicate, approval.KindGoodwill}[w.choose("kind", 2, 1)]
		out = append(out, &amendsv1.ActionRefund{
			PaymentId: c.GetPaymentId(), Amount: money.New(minor, c.GetAmount().GetCurrency()), Kind: kind, IdempotencyKey: fmt.Sprintf("refund:%s:%s", m.id, c.GetPaymentId()),
		})
	}
	return out
}
