package envelope

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// MaxSize is the largest sealed envelope, in bytes.
const MaxSize = 256 << 10

// The same message sent twice must be the same bytes.
var wire = proto.MarshalOptions{Deterministic: true}

// Seal puts payload into env and gives the bytes to publish. An empty type or
// schema version is filled in with the current one of the payload. Every check
// of Open but the deadline is made here too, so that a sender finds its own
// mistake; the error then wraps a *Rejection.
func Seal(env *amendsv1.Envelope, payload proto.Message) ([]byte, error) {
	return desk.seal(env, payload)
}

// Pack is Seal without the schema rules, for a message that a sender's own
// code derives from a checked record. Whoever receives it checks them all.
func Pack(env *amendsv1.Envelope, payload proto.Message) ([]byte, error) {
	return desk.pack(env, payload)
}

func (r registry) seal(env *amendsv1.Envelope, payload proto.Message) ([]byte, error) {
	data, err := r.pack(env, payload)
	if err != nil {
		return nil, err
	}
	if rej := checkSchema(env, payload); rej != nil {
		return nil, fmt.Errorf("seal %s: %w", env.GetType(), rej)
	}
	return data, nil
}

func (r registry) pack(env *amendsv1.Envelope, payload proto.Message) ([]byte, error) {
	if env == nil || payload == nil {
		return nil, errors.New("seal: no envelope or no payload")
	}
	t, ok := r.byPayload(payload)
	if !ok {
		return nil, fmt.Errorf("seal: %w", reject(ReasonTypeUnknown, "%s is not a message of the desk", payload.ProtoReflect().Descriptor().FullName()))
	}
	if env.GetType() == "" {
		env.Type = t.Name
	}
	if env.GetSchemaVersion() == "" {
		env.SchemaVersion = t.Version()
	}
	if env.GetType() != t.Name {
		return nil, fmt.Errorf("seal %s: %w", t.Name, reject(ReasonSchemaInvalid, "the envelope names another type than its payload has"))
	}
	body, err := wire.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("seal %s: encode the payload: %w", t.Name, err)
	}
	env.Payload = body
	if err := ident.Tokens("tenant", env.GetTenant(), "case_id", env.GetCaseId()); err != nil {
		return nil, fmt.Errorf("seal %s: %w", t.Name, &Rejection{Reason: ReasonSchemaInvalid, Err: err})
	}
	parts := subject.Parts{Kind: t.Kind, Sender: env.GetSender(), Recipient: env.GetRecipient(), Tenant: env.GetTenant(), CaseID: env.GetCaseId()}
	if _, rej := r.admit(env, parts); rej != nil {
		return nil, fmt.Errorf("seal %s: %w", t.Name, rej)
	}
	data, err := wire.Marshal(env)
	if err != nil {
		return nil, fmt.Errorf("seal %s: encode the envelope: %w", t.Name, err)
	}
	if len(data) > MaxSize {
		return nil, fmt.Errorf("seal %s: %w", t.Name, reject(ReasonTooLarge, "%d bytes, at most %d", len(data), MaxSize))
	}
	return data, nil
}

// Open checks a message that arrived on subj and was stored by the broker at
// the moment at. The error, if any, is a *Rejection; envelope and payload are
// then what could be decoded, for the record and for an answer, and may be nil.
func Open(data []byte, subj subject.Parts, at time.Time) (*amendsv1.Envelope, proto.Message, error) {
	env, payload, rej := desk.open(data, subj, at)
	if rej != nil { // a nil *Rejection must not become a non-nil error
		return env, payload, rej
	}
	return env, payload, nil
}

func (r registry) open(data []byte, subj subject.Parts, at time.Time) (*amendsv1.Envelope, proto.Message, *Rejection) {
	if len(data) > MaxSize {
		return nil, nil, reject(ReasonTooLarge, "%d bytes, at most %d", len(data), MaxSize)
	}
	env := new(amendsv1.Envelope)
	if err := proto.Unmarshal(data, env); err != nil {
		return nil, nil, reject(ReasonUndecodable, "decode the envelope: %w", err)
	}
	t, rej := r.admit(env, subj)
	if rej != nil {
		return env, nil, rej
	}
	payload := t.New()
	if err := proto.Unmarshal(env.GetPayload(), payload); err != nil {
		return env, nil, reject(ReasonUndecodable, "decode the payload of %s: %w", t.Name, err)
	}
	if rej := checkSchema(env, payload); rej != nil {
		return env, payload, rej
	}
	if d := env.GetDeadline(); d != nil && at.After(d.AsTime()) {
		return env, payload, reject(ReasonDeadlinePassed, "stored %s after the deadline", at.Sub(d.AsTime()))
	}
	return env, payload, nil
}

// admit checks subject, sender, type and version, in this order.
func (r registry) admit(env *amendsv1.Envelope, subj subject.Parts) (Type, *Rejection) {
	// On tasks and timers only the orchestrator may publish; everything else
	// goes to it.
	sender, recipient := string(roles.Orchestrator), string(roles.Orchestrator)
	switch subj.Kind {
	case subject.KindIntake, subject.KindResult:
		sender = subj.Sender
	case subject.KindTask:
		recipient = subj.Recipient
	case subject.KindDue:
	default:
		return Type{}, reject(ReasonSubjectMismatch, "no envelope travels on %q", subj.Kind)
	}
	switch {
	case env.GetTenant() != subj.Tenant:
		return Type{}, reject(ReasonSubjectMismatch, "the envelope names another tenant than its subject")
	case env.GetCaseId() != subj.CaseID:
		return Type{}, reject(ReasonSubjectMismatch, "the envelope names another case than its subject")
	case env.GetRecipient() != recipient:
		return Type{}, reject(ReasonSubjectMismatch, "the envelope names another recipient than its subject")
	case env.GetSender() != sender:
		return Type{}, reject(ReasonSenderForged, "published by %s, the envelope names another sender", sender)
	case !r.speaks(sender, subj.Kind):
		return Type{}, reject(ReasonSenderNotAllowed, "%s sends nothing on %q", sender, subj.Kind)
	}
	t, ok := r.byName(env.GetType())
	switch {
	case !ok:
		return Type{}, reject(ReasonTypeUnknown, "the envelope's type is not known")
	case t.Kind != subj.Kind || !t.allows(sender, recipient):
		return Type{}, reject(ReasonSenderNotAllowed, "%s may not send %s to %s on %q", sender, t.Name, recipient, subj.Kind)
	case !t.Accepts(env.GetSchemaVersion()):
		return Type{}, reject(ReasonVersionUnknown, "not a version of %s this receiver reads; current is %s", t.Name, t.Version())
	}
	return t, nil
}

func checkSchema(env *amendsv1.Envelope, payload proto.Message) *Rejection {
	if err := Validate(env); err != nil {
		return reject(ReasonSchemaInvalid, "envelope: %w", err)
	}
	if err := Validate(payload); err != nil {
		return reject(ReasonSchemaInvalid, "%s: %w", env.GetType(), err)
	}
	return nil
}
