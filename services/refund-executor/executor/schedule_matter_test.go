package executor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const corpus = "2026-03"

// matter is one case: the real decision function over its record. What the
// other specialists say is said at once, for they move no money.
type matter struct {
	w   *world
	id  string
	rec *amendsv1.CaseRecord
	// blind are payments that its investigator saw as not settled.
	blind map[string]bool
	// careless: the policy it read needs nobody's approval.
	careless bool
	// told are refund ids that its record has named.
	told map[string]bool
	// account is what the comparison of ledger and cases knows of it.
	account casework.Account
	// people: when it came to people for the last time.
	people time.Time
	// undecided counts the answers that people have to decide, since all is calm.
	undecided int
}

// letter is an input on its way to a case.
type letter struct {
	matter  *matter
	env     *amendsv1.Envelope
	payload proto.Message
	// at is when the broker had it.
	at time.Time
}

func newMatter(w *world, n int) *matter {
	m := &matter{w: w, id: fmt.Sprintf("req-%d", n), blind: map[string]bool{}, told: map[string]bool{}}
	m.careless = w.choose("careless", 9, 1) == 1
	if len(w.order.order.Captures) > 2 && w.choose("blind", 3, 2) == 1 {
		m.blind[w.order.order.Captures[1+w.pick(len(w.order.order.Captures)-1, "blind to")].GetPaymentId()] = true
	}
	return m
}

func (w *world) matter(id string) *matter {
	for _, m := range w.matters {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (m *matter) state() string { return casework.StateName(m.rec.GetState()) }

func (m *matter) open() {
	in := m.input(m.envelope("gateway"), &amendsv1.CaseOpened{
		Channel: "web", Message: &amendsv1.UntrustedText{Text: "Order 8472 was charged twice.", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER},
		BodySha256: strings.Repeat("0", 64), PostedBy: "web-key",
	}, m.w.clock)
	in.Triage = &amendsv1.Triage{
		Intents: []string{"duplicate_charge_refund"}, Outcome: amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED, OrderId: theOrder, Confidence: 90, Engine: "deterministic/1",
	}
	m.apply(in)
}

func (m *matter) envelope(sender roles.Service) *amendsv1.Envelope {
	m.w.seq++
	return &amendsv1.Envelope{
		MessageId: ident.Derive(m.w.clock, "schedule", fmt.Sprint(m.w.seq)), CaseId: m.id, Tenant: theTenant, RequestId: m.id, CustomerId: "cust_5519",
		Sender: string(sender), Recipient: string(roles.Orchestrator), TraceId: "7f3a91",
	}
}

func (m *matter) input(env *amendsv1.Envelope, payload proto.Message, at time.Time) casework.Input {
	return casework.Input{AppliedInput: &amendsv1.AppliedInput{Envelope: env, BrokerTime: timestamppb.New(at), Stream: "SCHEDULE", PolicyCorpus: corpus}, Payload: payload}
}

// post puts an input from outside on its way.
func (m *matter) post(sender roles.Service, payload proto.Message) {
	m.receive(m.envelope(sender), payload)
}

func (m *matter) receive(env *amendsv1.Envelope, payload proto.Message) {
	m.w.letters = append(m.w.letters, &letter{m, env, payload, m.w.clock})
}

// read takes an input in, as the orchestrator does.
func (l *letter) read() {
	m := l.matter
	in := m.input(l.env, l.payload, l.at)
	if d, ok := casework.NeedsApprover(l.payload); ok {
		in.Approver = checked(d.GetApproverId(), approval.Check(people.all, m.rec.GetAction(), d, l.at))
	}
	if d, ok := casework.NeedsCustodian(l.payload); ok {
		in.Approver = checked(d.GetCustodianId(), approval.CheckCustody(people.all, theTenant, m.id, d, l.at))
	}
	if r, ok := l.payload.(*amendsv1.EffectResult); ok && m.w.calm && r.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE {
		m.undecided++
	}
	m.apply(in)
}

func checked(who string, err error) *amendsv1.ApproverCheck {
	if err != nil {
		return &amendsv1.ApproverCheck{Reason: approval.ReasonOf(err), ApproverId: who}
	}
	return &amendsv1.ApproverCheck{Valid: true, ApproverId: who}
}

// due tells the case that a deadline has passed.
func (m *matter) due() {
	m.apply(m.input(m.envelope(roles.Orchestrator), &amendsv1.TimerDue{ArmedAtVersion: m.rec.GetVersion()}, m.w.clock))
}

// apply commits what the decision function makes of an input, and sends what
// the record then wants.
func (m *matter) apply(in casework.Input) {
	c, err := casework.Decide(m.rec, in, limits)
	switch {
	case errors.Is(err, casework.ErrHandled), errors.Is(err, casework.ErrNothingDue), errors.Is(err, casework.ErrFull):
		return
	case err != nil:
		m.w.breaks("WORLD", "%s: decide %T in %s: %v", m.id, in.Payload, m.state(), err)
		return
	}
	before := m.rec
	m.rec = c.GetRecord()
	m.committed(before)
	for _, t := range casework.Delta(before, m.rec, limits).Tasks {
		if t.Envelope.GetRecipient() == string(roles.RefundExecutor) {
			m.w.tasks = append(m.w.tasks, &delivery{message: bus.Message{
				Envelope: t.Envelope, Payload: t.Payload, Parts: subject.Parts{Tenant: theTenant, CaseID: m.id}, Stored: bus.Stored{Time: m.w.clock},
			}})
			m.w.proposed(t.Payload.GetExecute().GetAction(), m.rec.GetActionSha256())
			continue
		}
		if payload := m.work(t); payload != nil {
			env := m.envelope(roles.Service(t.Envelope.GetRecipient()))
			env.TaskId, env.Attempt, env.IdempotencyKey, env.BasedOnVersion = t.Envelope.GetTaskId(), t.Envelope.GetAttempt(), t.Envelope.GetIdempotencyKey(), t.Envelope.GetBasedOnVersion()
			m.apply(m.input(env, payload, m.w.clock))
		}
	}
}

var limits = casework.DefaultLimits()

// work is what an honest specialist answers.
func (m *matter) work(t casework.Task) proto.Message {
	switch in := t.Payload.GetInput().(type) {
	case *amendsv1.TaskAssign_Payment:
		return m.evidence()
	case *amendsv1.TaskAssign_Policy:
		return m.policy()
	case *amendsv1.TaskAssign_Compose:
		return &amendsv1.Draft{Kind: in.Compose.GetKind(), Text: "text", Claims: in.Compose.GetFacts(), FactsSha256: in.Compose.GetFactsSha256(), Language: "en"}
	case *amendsv1.TaskAssign_Verify:
		return &amendsv1.Verification{Verdict: amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED, DraftSha256: evidence.TextSHA256(in.Verify.GetDraft().GetText())}
	}
	return nil
}

func (m *matter) evidence() *amendsv1.PaymentEvidence {
	o := m.w.read()
	e := &amendsv1.PaymentEvidence{Order: o.Order, Captures: o.Captures, Refunds: o.Refunds, Complete: true}
	for _, c := range e.GetCaptures() {
		if m.blind[c.GetPaymentId()] {
			unsettle(c)
		}
	}
	for i, tool := range []string{roles.ToolListCaptures, roles.ToolListRefunds, roles.ToolGetSettlement} {
		e.Calls = append(e.Calls, &amendsv1.ToolCall{
			CallId: fmt.Sprintf("call-%s-p%d", ident.Suffix(m.id), i+1), Tool: tool, Source: "payments", ObservedAt: timestamppb.New(m.w.clock), Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED,
		})
	}
	return e
}

func (m *matter) policy() *amendsv1.PolicyReading {
	rule := &amendsv1.RefundRule{Name: "duplicate_capture", WindowHours: 720}
	for _, l := range limited {
		first, second := l.ApprovalThreshold, l.SecondThreshold
		if m.careless {
			first, second = 1<<40, 1<<41
		}
		rule.ApprovalThresholds = append(rule.ApprovalThresholds, money.New(first, l.Currency))
		rule.SecondThresholds = append(rule.SecondThresholds, money.New(second, l.Currency))
	}
	return &amendsv1.PolicyReading{
		Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED, CorpusVersion: corpus,
		Passage: &amendsv1.PolicyPassage{DocumentId: "POL-REF-004", Version: 4, Citation: "POL-REF-004 v4 section 2", Quote: &amendsv1.UntrustedText{Text: "…", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_POLICY_DOCUMENT}},
		Rule:    rule,
		Calls:   []*amendsv1.ToolCall{{CallId: "call-" + ident.Suffix(m.id) + "-q1", Tool: roles.ToolPolicySearch, Source: "policy", ObservedAt: timestamppb.New(m.w.clock), Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED}},
	}
}

// committed looks at a new record: what it says must be true at that moment.
func (m *matter) committed(before *amendsv1.CaseRecord) {
	w, rec := m.w, m.rec
	first := int(before.GetVersion())
	for _, t := range rec.GetTimeline()[first:] {
		w.tell("%s v%d %s by %s: %s", m.id, t.GetVersion(), m.state(), t.GetRow(), t.GetNote())
		w.sawRow(t.GetRow())
		if t.GetState() == amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
			m.people = w.clock
		}
	}
	m.account.Take(rec)
	for _, r := range rec.GetEffect().GetRefunds() {
		if id := r.GetOutcome().GetRefundId(); id != "" {
			m.told[id] = true
		}
	}
	if rec.GetState() == amendsv1.CaseState_CASE_STATE_REFUNDED && before.GetState() != rec.GetState() {
		m.saysRefunded()
	}
}

// saysRefunded: every refund of the action exists at the provider, as the
// record names it (TRUTH-2).
func (m *matter) saysRefunded() {
	there := m.w.read().Refunds
	for _, want := range m.rec.GetAction().GetRefunds() {
		i := slices.IndexFunc(m.rec.GetEffect().GetRefunds(), func(r *amendsv1.RefundResult) bool { return r.GetPaymentId() == want.GetPaymentId() })
		if i < 0 {
			m.w.breaks("TRUTH-2", "%s says refunded and names no refund on %s", m.id, want.GetPaymentId())
			return
		}
		id := m.rec.GetEffect().GetRefunds()[i].GetOutcome().GetRefundId()
		if !slices.ContainsFunc(there, func(r *amendsv1.Refund) bool {
			return r.GetRefundId() == id && r.GetPaymentId() == want.GetPaymentId() && r.GetAmount().GetMinor() == want.GetAmount().GetMinor() &&
				(r.GetReference() == want.GetIdempotencyKey() || m.rec.GetEffect().GetRefunds()[i].GetOutcome().GetSettledBy() != "")
		}) {
			m.w.breaks("TRUTH-2", "%s says refunded by %q, which the provider does not have", m.id, id)
		}
	}
}
