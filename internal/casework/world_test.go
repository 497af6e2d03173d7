package casework_test

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/evidence"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const corpus = "2026-03"

var start = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

// world plays every party around one case: it answers the tasks the record
// wants, by the ledger it is given.
type world struct {
	tb      tester
	lim     casework.Limits
	now     time.Time
	rec     *amendsv1.CaseRecord
	log     []*amendsv1.CaseCommit
	seq     int
	ledger  *amendsv1.PaymentEvidence
	verdict func(*amendsv1.Draft) []*amendsv1.ClaimCheck
	// handed are the tasks about actions that the executor had.
	handed []casework.Task
	// status is how the provider has the case's refunds.
	status amendsv1.RefundStatus
}

// tester is what a test and a property have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

func newWorld(tb tester, ledger *amendsv1.PaymentEvidence) *world {
	tb.Helper()
	return &world{tb: tb, lim: casework.DefaultLimits(), now: start, ledger: ledger, status: amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED}
}

// ledger8472 is the founding order; the second payment is settled, or a hold.
func ledger8472(secondSettled bool) *amendsv1.PaymentEvidence {
	at := func(s string) *timestamppb.Timestamp {
		t, _ := time.Parse(time.RFC3339, s)
		return timestamppb.New(t)
	}
	e := &amendsv1.PaymentEvidence{
		Order: &amendsv1.Order{OrderId: "8472", Total: money.New(200000, "INR"), PlacedAt: at("2026-03-10T09:00:00Z")}, Complete: true,
		Captures: []*amendsv1.Capture{
			{PaymentId: "pay_8472_a", Amount: money.New(200000, "INR"), Status: amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED, Captured: true, Settled: true, CapturedAt: at("2026-03-10T09:00:02Z"), SettledAt: at("2026-03-11T02:00:00Z"), Method: "card_visa_4417"},
			{PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Status: amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, Method: "card_visa_4417"},
		},
	}
	if secondSettled {
		b := e.GetCaptures()[1]
		b.Status, b.Captured, b.Settled = amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED, true, true
		b.CapturedAt, b.SettledAt = at("2026-03-10T09:00:07Z"), at("2026-03-11T02:00:00Z")
	}
	for i, tool := range []string{"payments.list_captures", "payments.list_refunds", "payments.get_settlement"} {
		e.Calls = append(e.Calls, &amendsv1.ToolCall{CallId: fmt.Sprintf("call-8472-p%d", i+1), Tool: tool, Source: "payments", ObservedAt: timestamppb.New(start), Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED})
	}
	return e
}

func policyV4() *amendsv1.PolicyReading {
	return &amendsv1.PolicyReading{
		Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED, CorpusVersion: corpus,
		Passage: &amendsv1.PolicyPassage{DocumentId: "POL-REF-004", Version: 4, Citation: "POL-REF-004 v4 section 2", Quote: &amendsv1.UntrustedText{Text: "…", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_POLICY_DOCUMENT}},
		Rule: &amendsv1.RefundRule{
			Name: "duplicate_capture", WindowHours: 720,
			ApprovalThresholds: []*amendsv1.Money{money.New(100000, "INR")}, SecondThresholds: []*amendsv1.Money{money.New(5000000, "INR")},
		},
		Calls: []*amendsv1.ToolCall{{CallId: "call-8472-q1", Tool: "policy.search", Source: "policy", ObservedAt: timestamppb.New(start), Outcome: amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED}},
	}
}

func supported() *amendsv1.Triage {
	return &amendsv1.Triage{Intents: []string{"duplicate_charge_refund", "refund_status"}, Outcome: amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED, OrderId: "8472", Confidence: 90, Engine: "deterministic/1", ClaimsRefund: true}
}

// input makes an input from outside or from a worker.
func (w *world) input(sender string, payload proto.Message, change func(*amendsv1.Envelope)) casework.Input {
	w.tb.Helper()
	w.seq++
	w.now = w.now.Add(time.Millisecond)
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(w.now, "test", fmt.Sprint(w.seq)), CaseId: "req-8472", Tenant: "acme-in", RequestId: "req-8472", CustomerId: "cust_5519",
		Sender: sender, Recipient: "orchestrator", TraceId: "7f3a91",
	}
	if change != nil {
		change(env)
	}
	if _, err := envelope.Seal(env, payload); err != nil {
		w.tb.Fatalf("seal %T: %v", payload, err)
	}
	return casework.Input{AppliedInput: &amendsv1.AppliedInput{Envelope: env, BrokerTime: timestamppb.New(w.now), Stream: "TEST", PolicyCorpus: corpus}, Payload: payload}
}

// apply decides an input and keeps the commit.
func (w *world) apply(in casework.Input) *amendsv1.CaseRecord {
	w.tb.Helper()
	c, err := casework.Decide(w.rec, in, w.lim)
	if err != nil {
		w.tb.Fatalf("decide %T in %s: %v", in.Payload, casework.StateName(w.rec.GetState()), err)
	}
	if err := envelope.Validate(c); err != nil {
		w.tb.Fatalf("commit breaks its contract: %v", err)
	}
	w.log, w.rec = append(w.log, c), c.GetRecord()
	return w.rec
}

func (w *world) post(t *amendsv1.Triage) {
	w.tb.Helper()
	in := w.input("gateway", &amendsv1.CaseOpened{
		Channel: "web", Message: &amendsv1.UntrustedText{Text: "Order 8472 was charged twice, and my refund has not arrived.", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER},
		BodySha256: strings.Repeat("0", 64), PostedBy: "web-key",
	}, nil)
	in.Triage = t
	w.apply(in)
}

func (w *world) tasks() []casework.Task { return casework.Outgoing(w.rec, w.lim).Tasks }

func (w *world) task(slice amendsv1.Slice) (casework.Task, bool) {
	for _, t := range w.tasks() {
		if t.Payload.GetContract().GetSlice() == slice {
			return t, true
		}
	}
	return casework.Task{}, false
}

func (w *world) mustTask(slice amendsv1.Slice) casework.Task {
	w.tb.Helper()
	t, ok := w.task(slice)
	if !ok {
		w.tb.Fatalf("no open %s task in %s", slice, casework.StateName(w.rec.GetState()))
	}
	return t
}

// reply gives the input with which a worker answers a task.
func (w *world) reply(t casework.Task, payload proto.Message) casework.Input {
	w.tb.Helper()
	return w.input(t.Envelope.GetRecipient(), payload, func(e *amendsv1.Envelope) {
		e.MessageId = ident.Derive(w.now, "result", t.Envelope.GetMessageId())
		e.TaskId, e.Attempt, e.IdempotencyKey, e.BasedOnVersion = t.Envelope.GetTaskId(), t.Envelope.GetAttempt(), t.Envelope.GetIdempotencyKey(), t.Envelope.GetBasedOnVersion()
	})
}

// work is what an honest worker answers to a task, after it has checked the
// task as every receiver does.
func (w *world) work(t casework.Task) proto.Message {
	w.tb.Helper()
	if _, err := envelope.Seal(proto.CloneOf(t.Envelope), t.Payload); err != nil {
		w.tb.Fatalf("task %s: its receiver refuses it: %v", t.Envelope.GetTaskId(), err)
	}
	switch in := t.Payload.GetInput().(type) {
	case *amendsv1.TaskAssign_Payment:
		return proto.CloneOf(w.ledger)
	case *amendsv1.TaskAssign_Policy:
		return policyV4()
	case *amendsv1.TaskAssign_Compose:
		return &amendsv1.Draft{Kind: in.Compose.GetKind(), Text: fmt.Sprintf("text %d", w.seq), Claims: in.Compose.GetFacts(), FactsSha256: in.Compose.GetFactsSha256(), Language: "en"}
	case *amendsv1.TaskAssign_Verify:
		v := &amendsv1.Verification{Verdict: amendsv1.VerificationVerdict_VERIFICATION_VERDICT_VERIFIED, DraftSha256: evidence.TextSHA256(in.Verify.GetDraft().GetText())}
		if w.verdict != nil {
			if v.Checks = w.verdict(in.Verify.GetDraft()); len(v.GetChecks()) > 0 {
				v.Verdict = amendsv1.VerificationVerdict_VERIFICATION_VERDICT_REJECTED
			}
		}
		return v
	case *amendsv1.TaskAssign_Execute:
		return w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, in.Execute.GetAction())
	case *amendsv1.TaskAssign_Cancel:
		return w.effect(amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN, in.Cancel.GetAction())
	case *amendsv1.TaskAssign_Confirm:
		return w.readAgain(in.Confirm.GetAction(), w.status)
	case *amendsv1.TaskAssign_Settle:
		return w.settlement(in.Settle)
	}
	return nil
}

func (w *world) effect(class amendsv1.EffectClass, a *amendsv1.ActionRecord) *amendsv1.EffectResult {
	e := &amendsv1.EffectResult{Class: class, ActionSha256: w.rec.GetActionSha256()}
	if class != amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED {
		return e
	}
	for i, r := range a.GetRefunds() {
		e.Refunds = append(e.Refunds, &amendsv1.RefundResult{
			IdempotencyKey: r.GetIdempotencyKey(), PaymentId: r.GetPaymentId(), Amount: r.GetAmount(),
			Outcome: &amendsv1.EffectOutcome{Class: class, RefundId: fmt.Sprintf("rf_%d", 5521+i), ProviderStatus: amendsv1.RefundStatus_REFUND_STATUS_PENDING, At: timestamppb.New(w.now)},
		})
	}
	return e
}

// readAgain is what the executor reads of an action's refunds.
func (w *world) readAgain(a *amendsv1.ActionRecord, st amendsv1.RefundStatus) *amendsv1.EffectResult {
	w.tb.Helper()
	sum, err := approval.ActionSHA256(a)
	if err != nil {
		w.tb.Fatal(err)
	}
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, a)
	e.ActionSha256 = sum
	for _, r := range e.GetRefunds() {
		r.Outcome.ProviderStatus = st
		r.ReadBack = &amendsv1.Refund{RefundId: r.GetOutcome().GetRefundId(), PaymentId: r.GetPaymentId(), Amount: r.GetAmount(), Status: st, Reference: r.GetIdempotencyKey()}
	}
	return e
}

// settlement is what the executor finds when a custodian's answer is true.
func (w *world) settlement(o *amendsv1.SettleOrder) *amendsv1.EffectResult {
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, o.GetAction())
	for i, st := range o.GetDecision().GetSettlements() {
		if st.GetRefundId() == "" {
			e.Class, e.Reason = amendsv1.EffectClass_EFFECT_CLASS_REFUSED, "settled_absent"
			e.Refunds[i].Outcome = &amendsv1.EffectOutcome{Class: amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, At: timestamppb.New(w.now), SettledBy: o.GetDecision().GetCustodianId()}
			continue
		}
		e.Refunds[i].Outcome.RefundId = st.GetRefundId()
	}
	return e
}

// settle answers open tasks until none is left that wants an answer.
func (w *world) settle() {
	w.tb.Helper()
	for range 100 {
		open := w.tasks()
		if len(open) == 0 {
			return
		}
		w.apply(w.reply(open[0], w.work(open[0])))
	}
	w.tb.Fatal("the case does not come to rest")
}

func (w *world) decision(verdict amendsv1.Verdict, who, id string, valid bool) casework.Input {
	w.tb.Helper()
	in := w.input("console", &amendsv1.SignedDecision{
		ApprovalId: id, Verdict: verdict, Tenant: "acme-in", CaseId: "req-8472", ActionSha256: w.rec.GetActionSha256(),
		ApproverId: who, KeyId: "k1", SignedAt: timestamppb.New(w.now), Expires: timestamppb.New(w.now.Add(time.Minute)), Signature: make([]byte, 64),
	}, nil)
	in.Approver = &amendsv1.ApproverCheck{Valid: valid, Reason: "signature_invalid", ApproverId: who}
	if valid {
		in.Approver.Reason = ""
	}
	return in
}

// due fires the case's timer at its next deadline.
func (w *world) due() {
	w.tb.Helper()
	next, ok := casework.Next(w.rec)
	if !ok {
		w.tb.Fatalf("%s waits for no deadline", casework.StateName(w.rec.GetState()))
	}
	w.now = next
	w.apply(w.input("orchestrator", &amendsv1.TimerDue{ArmedAtVersion: w.rec.GetVersion()}, nil))
}

// want checks where the case stands, and that its log replays.
func (w *world) want(state string, version uint64) {
	w.tb.Helper()
	if got := casework.StateName(w.rec.GetState()); got != state || w.rec.GetVersion() != version {
		for _, t := range w.rec.GetTimeline() {
			w.tb.Logf("v%d %s %s: %s", t.GetVersion(), casework.StateName(t.GetState()), t.GetRow(), t.GetNote())
		}
		w.tb.Fatalf("case is %s at v%d, want %s at v%d", got, w.rec.GetVersion(), state, version)
	}
	w.replays()
}

func (w *world) replays() {
	w.tb.Helper()
	rec, err := casework.Replay(w.log, w.lim, payloadOf)
	if err != nil {
		w.tb.Fatalf("STATE-1: %v", err)
	}
	if !proto.Equal(rec, w.rec) {
		w.tb.Fatal("STATE-1: replaying the log gives another record")
	}
}

func payloadOf(env *amendsv1.Envelope) (proto.Message, error) {
	t, ok := envelope.Lookup(env.GetType())
	if !ok {
		return nil, fmt.Errorf("type %q", env.GetType())
	}
	m := t.New()
	return m, proto.Unmarshal(env.GetPayload(), m)
}
