package envelope_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func lookup(t testing.TB, name string) envelope.Type {
	t.Helper()
	ty, ok := envelope.Lookup(name)
	if !ok {
		t.Fatalf("type %s is not known", name)
	}
	return ty
}

func TestSealedMessagesOpen(t *testing.T) {
	t.Parallel()
	for _, ty := range envelope.Types() {
		for _, payload := range samples(t, ty) {
			env := header(ty)
			env.Type, env.SchemaVersion = "", "" // Seal knows them
			data := seal(t, env, payload)
			got, back, err := envelope.Open(data, on(env), received)
			if err != nil {
				t.Fatalf("%s: %v", ty.Name, err)
			}
			if !proto.Equal(got, env) || !proto.Equal(back, payload) {
				t.Errorf("%s came back different", ty.Name)
			}
		}
	}
}

// A forged, broken or late message, each with its own reason. The messages are
// built past Seal, as a sender that keeps no rule would.
func TestOpenRejects(t *testing.T) {
	t.Parallel()
	type message struct {
		env     *amendsv1.Envelope
		payload proto.Message
		raw     []byte
		subj    subject.Parts
		at      time.Time
	}
	for _, c := range []struct {
		name, typ, reason string
		change            func(m *message)
	}{
		{"too large", envelope.Draft, envelope.ReasonTooLarge, func(m *message) { m.raw = make([]byte, envelope.MaxSize+1) }},
		{"not protobuf", envelope.Draft, envelope.ReasonUndecodable, func(m *message) { m.raw = []byte("{\"type\":\"draft\"}") }},
		{"payload not protobuf", envelope.Draft, envelope.ReasonUndecodable, func(m *message) { m.env.Payload = []byte{0xff} }},
		{"another tenant", envelope.Draft, envelope.ReasonSubjectMismatch, func(m *message) { m.env.Tenant = "acme-de" }},
		{"another case", envelope.Draft, envelope.ReasonSubjectMismatch, func(m *message) { m.env.CaseId = "req-1" }},
		{"another recipient", envelope.TaskAssign, envelope.ReasonSubjectMismatch, func(m *message) { m.env.Recipient = "composer" }},
		{"result for a worker", envelope.Draft, envelope.ReasonSubjectMismatch, func(m *message) { m.env.Recipient = "verifier" }},
		{"on a subject without envelopes", envelope.Draft, envelope.ReasonSubjectMismatch, func(m *message) { m.subj.Kind = subject.KindCase }},
		{"a schedule that has not fired", envelope.TimerDue, envelope.ReasonSubjectMismatch, func(m *message) { m.subj.Kind = subject.KindTimer }},
		{"forged result", envelope.PolicyReading, envelope.ReasonSenderForged, func(m *message) { m.subj.Sender = "composer" }},
		{"forged task", envelope.TaskAssign, envelope.ReasonSenderForged, func(m *message) { m.env.Sender = "composer" }},
		{"forged timer", envelope.TimerDue, envelope.ReasonSenderForged, func(m *message) { m.env.Sender = "gateway" }},
		{"a worker at intake", envelope.CaseOpened, envelope.ReasonSenderNotAllowed, func(m *message) { m.env.Sender, m.subj.Sender = "composer", "composer" }},
		{"a result of another's field", envelope.PaymentEvidence, envelope.ReasonSenderNotAllowed, func(m *message) { m.env.Sender, m.subj.Sender = "composer", "composer" }},
		{"a decision from the gateway", envelope.ApprovalDecision, envelope.ReasonSenderNotAllowed, func(m *message) { m.env.Sender, m.subj.Sender = "gateway", "gateway" }},
		{"a post from the console", envelope.CaseOpened, envelope.ReasonSenderNotAllowed, func(m *message) { m.env.Sender, m.subj.Sender = "console", "console" }},
		{"a task for the gateway", envelope.TaskAssign, envelope.ReasonSenderNotAllowed, func(m *message) { m.env.Recipient, m.subj.Recipient = "gateway", "gateway" }},
		{"a timer sent as a task", envelope.TimerDue, envelope.ReasonSenderNotAllowed, func(m *message) { m.subj.Kind, m.subj.Recipient = subject.KindTask, "orchestrator" }},
		{"unknown type", envelope.Draft, envelope.ReasonTypeUnknown, func(m *message) { m.env.Type = "draft2" }},
		{"no type", envelope.Draft, envelope.ReasonTypeUnknown, func(m *message) { m.env.Type = "" }},
		{"unknown major", envelope.Draft, envelope.ReasonVersionUnknown, func(m *message) { m.env.SchemaVersion = "2.0" }},
		{"minor above the window", envelope.Draft, envelope.ReasonVersionUnknown, func(m *message) { m.env.SchemaVersion = "1.1" }},
		{"no version", envelope.Draft, envelope.ReasonVersionUnknown, func(m *message) { m.env.SchemaVersion = "" }},
		{"version in another spelling", envelope.Draft, envelope.ReasonVersionUnknown, func(m *message) { m.env.SchemaVersion = "01.0" }},
		{"short message id", envelope.Draft, envelope.ReasonSchemaInvalid, func(m *message) { m.env.MessageId = "1" }},
		{"hop above the limit", envelope.TaskAssign, envelope.ReasonSchemaInvalid, func(m *message) { m.env.Hop = 4 }},
		{"deadline out of range", envelope.Draft, envelope.ReasonSchemaInvalid, func(m *message) { m.env.Deadline = &timestamppb.Timestamp{Seconds: math.MaxInt64} }},
		{"required field missing", envelope.CaseOpened, envelope.ReasonSchemaInvalid, func(m *message) { m.payload.(*amendsv1.CaseOpened).Message = nil }},
		{"message above 16 KiB", envelope.CaseMessage, envelope.ReasonSchemaInvalid, func(m *message) {
			m.payload.(*amendsv1.CustomerMessage).Message.Text = strings.Repeat("x", 16<<10+1)
		}},
		{"negative amount", envelope.PaymentEvidence, envelope.ReasonSchemaInvalid, func(m *message) {
			m.payload.(*amendsv1.PaymentEvidence).Captures[0].Amount = money.New(-200000, "INR")
		}},
		{"refund of nothing", envelope.TaskAssign, envelope.ReasonSchemaInvalid, func(m *message) {
			execute(t, m.payload).Action.Refunds[0].Amount = money.New(0, "INR")
		}},
		{"negative refund", envelope.TaskAssign, envelope.ReasonSchemaInvalid, func(m *message) {
			execute(t, m.payload).Action.Refunds[0].Amount = money.New(-1, "INR")
		}},
		{"no input in a task", envelope.TaskAssign, envelope.ReasonSchemaInvalid, func(m *message) { m.payload.(*amendsv1.TaskAssign).Input = nil }},
		{"unknown enum value", envelope.PaymentEvidence, envelope.ReasonSchemaInvalid, func(m *message) {
			m.payload.(*amendsv1.PaymentEvidence).Captures[0].Status = 99
		}},
		{"unknown enum value where zero is allowed", envelope.EffectResult, envelope.ReasonSchemaInvalid, func(m *message) {
			m.payload.(*amendsv1.EffectResult).Refunds[0].Outcome.ProviderStatus = 99
		}},
		{"unspecified verdict", envelope.ApprovalDecision, envelope.ReasonSchemaInvalid, func(m *message) {
			m.payload.(*amendsv1.SignedDecision).Verdict = amendsv1.Verdict_VERDICT_UNSPECIFIED
		}},
		{"short signature", envelope.ApprovalDecision, envelope.ReasonSchemaInvalid, func(m *message) {
			m.payload.(*amendsv1.SignedDecision).Signature = make([]byte, 63)
		}},
		{"time out of range in the payload", envelope.EffectResult, envelope.ReasonSchemaInvalid, func(m *message) {
			m.payload.(*amendsv1.EffectResult).BegunAt = &timestamppb.Timestamp{Nanos: -1}
		}},
		{"late by the broker's time", envelope.Draft, envelope.ReasonDeadlinePassed, func(m *message) { m.at = received.Add(30*time.Second + 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ty := lookup(t, c.typ)
			m := &message{env: header(ty), payload: samples(t, ty)[0], at: received}
			m.subj = on(m.env)
			c.change(m)
			if m.raw == nil {
				if m.env.Payload == nil {
					m.env.Payload = marshal(t, m.payload)
				}
				m.raw = marshal(t, m.env)
			}
			_, _, err := envelope.Open(m.raw, m.subj, m.at)
			var rej *envelope.Rejection
			if !errors.As(err, &rej) || rej.Reason != c.reason {
				t.Fatalf("got %v, want %s", err, c.reason)
			}
		})
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// execute turns a task into one for the executor.
func execute(t testing.TB, task proto.Message) *amendsv1.ExecuteOrder {
	t.Helper()
	for _, s := range samples(t, lookup(t, envelope.TaskAssign)) {
		if e := s.(*amendsv1.TaskAssign).GetExecute(); e != nil {
			task.(*amendsv1.TaskAssign).Input = &amendsv1.TaskAssign_Execute{Execute: e}
			return e
		}
	}
	t.Fatal("no execute sample")
	return nil
}

func TestDeadlineIsJudgedByTheBrokersTimeOnly(t *testing.T) {
	t.Parallel()
	ty := lookup(t, envelope.Draft)
	env := header(ty)
	env.SentAt = timestamppb.New(received.Add(time.Hour)) // a sender's clock decides nothing
	data := seal(t, env, samples(t, ty)[0])
	if _, _, err := envelope.Open(data, on(env), env.GetDeadline().AsTime()); err != nil {
		t.Errorf("at the deadline itself: %v", err)
	}
	env.Deadline = nil
	data = seal(t, env, samples(t, ty)[0])
	if _, _, err := envelope.Open(data, on(env), received.AddDate(10, 0, 0)); err != nil {
		t.Errorf("without a deadline: %v", err)
	}
}

func TestOpenGivesWhatItCouldDecode(t *testing.T) {
	t.Parallel()
	ty := lookup(t, envelope.Draft)
	env := header(ty)
	data := seal(t, env, samples(t, ty)[0])
	forged := on(env)
	forged.Sender = "verifier"
	if got, payload, err := envelope.Open(data, forged, received); err == nil || !proto.Equal(got, env) || payload != nil {
		t.Errorf("forged: envelope %v, payload %v, error %v", got, payload, err)
	}
	if got, payload, err := envelope.Open(data, on(env), received.Add(time.Hour)); err == nil || !proto.Equal(got, env) || payload == nil {
		t.Errorf("late: envelope %v, payload %v, error %v", got, payload, err)
	}
}

func TestVersionWindow(t *testing.T) {
	t.Parallel()
	ty := envelope.Type{Major: 1, Minor: 2}
	for version, want := range map[string]bool{"1.2": true, "1.1": true, "1.0": false, "1.3": false, "2.2": false, "0.2": false, "1": false, "1.02": false, "": false} {
		if got := ty.Accepts(version); got != want {
			t.Errorf("Accepts(%q) = %t at %s", version, got, ty.Version())
		}
	}
	if (envelope.Type{Major: 2}).Accepts("2.-1") {
		t.Error("2.0 has no version before it")
	}
}

func TestAnUpgradedReceiverReadsThePreviousMinor(t *testing.T) {
	t.Parallel()
	for _, ty := range envelope.Types() {
		env := header(ty)
		data := seal(t, env, samples(t, ty)[0])
		if _, _, rej := envelope.OpenAfterUpgrade(data, on(env), received); rej != nil {
			t.Errorf("%s: %v", ty.Name, rej)
		}
	}
}

func TestSealRefusesWhatOpenWould(t *testing.T) {
	t.Parallel()
	ty := lookup(t, envelope.Draft)
	for _, c := range []struct {
		name, reason string
		change       func(env *amendsv1.Envelope, d *amendsv1.Draft) proto.Message
	}{
		{"no payload of the desk", envelope.ReasonTypeUnknown, func(*amendsv1.Envelope, *amendsv1.Draft) proto.Message { return new(amendsv1.Money) }},
		{"another type's name", envelope.ReasonSchemaInvalid, func(e *amendsv1.Envelope, d *amendsv1.Draft) proto.Message { e.Type = envelope.Verification; return d }},
		{"tenant not a token", envelope.ReasonSchemaInvalid, func(e *amendsv1.Envelope, d *amendsv1.Draft) proto.Message { e.Tenant = "acme.in"; return d }},
		{"not the author", envelope.ReasonSenderNotAllowed, func(e *amendsv1.Envelope, d *amendsv1.Draft) proto.Message { e.Sender = "verifier"; return d }},
		{"unknown version", envelope.ReasonVersionUnknown, func(e *amendsv1.Envelope, d *amendsv1.Draft) proto.Message { e.SchemaVersion = "1.1"; return d }},
		{"no text", envelope.ReasonSchemaInvalid, func(_ *amendsv1.Envelope, d *amendsv1.Draft) proto.Message { d.Text = ""; return d }},
	} {
		env, draft := header(ty), samples(t, ty)[0].(*amendsv1.Draft)
		_, err := envelope.Seal(env, c.change(env, draft))
		var rej *envelope.Rejection
		if !errors.As(err, &rej) || rej.Reason != c.reason {
			t.Errorf("%s: got %v, want %s", c.name, err, c.reason)
		}
	}
	if _, err := envelope.Seal(nil, nil); err == nil {
		t.Error("sealed nothing")
	}
}

func TestSealBoundsTheSize(t *testing.T) {
	t.Parallel()
	ty := lookup(t, envelope.PaymentEvidence)
	big := samples(t, ty)[0].(*amendsv1.PaymentEvidence)
	args := slices.Repeat([]string{strings.Repeat("€", 256)}, 16)
	for _, call := range big.Calls {
		call.Arguments = args
	}
	big.Calls = slices.Repeat(big.Calls[:1], 32)
	_, err := envelope.Seal(header(ty), big)
	var rej *envelope.Rejection
	if !errors.As(err, &rej) || rej.Reason != envelope.ReasonTooLarge {
		t.Fatalf("%d bytes: got %v, want %s", proto.Size(big), err, envelope.ReasonTooLarge)
	}
}

// Every type has an author that the role manifest lets publish there, and only
// one where the record's field has one.
func TestTypesAgreeWithTheRoleManifest(t *testing.T) {
	t.Parallel()
	manifest := roles.Desk()
	for _, ty := range envelope.Types() {
		for _, sender := range ty.Senders {
			role, ok := manifest.Role(sender)
			if !ok {
				t.Errorf("%s: no role %s", ty.Name, sender)
			}
			family := string(ty.Kind) + "."
			if ty.Kind == subject.KindDue { // the broker publishes it for a schedule on timer
				family = string(subject.KindTimer) + "."
			}
			if !slices.ContainsFunc(role.Publishes, func(s string) bool { return strings.HasPrefix(s, family) }) {
				t.Errorf("%s may send %s but not publish on %s>", sender, ty.Name, family)
			}
		}
		if ty.Kind == subject.KindResult && ty.Name != envelope.TaskError && len(ty.Senders) != 1 {
			t.Errorf("%s has %d authors, want one", ty.Name, len(ty.Senders))
		}
	}
}
