package envelope

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Names of the message types, as they are on the wire.
const (
	CaseOpened       = "case.opened"
	CaseMessage      = "case.message"
	CaseCancel       = "case.cancel"
	ProviderEvent    = "provider.event"
	ApprovalDecision = "approval.decision"
	CustodyDecision  = "custody.decision"
	TaskAssign       = "task.assign"
	PaymentEvidence  = "payment_evidence"
	PolicyReading    = "policy_reading"
	Draft            = "draft"
	Verification     = "verification"
	EffectResult     = "effect_result"
	TaskError        = "task.error"
	EffectFinding    = "effect_finding"
	CaseFinding      = "case.finding"
	TimerDue         = "timer.due"
	StopLifted       = "stop.lifted"
)

// Type is one kind of message and who may exchange it.
type Type struct {
	Name         string
	Major, Minor int
	New          func() proto.Message
	// Kind is the subject family it travels on.
	Kind       subject.Kind
	Senders    []roles.Service
	Recipients []roles.Service
}

// Version is the current schema version, MAJOR.MINOR.
func (t Type) Version() string { return strconv.Itoa(t.Major) + "." + strconv.Itoa(t.Minor) }

// Accepts reports whether a receiver reads a version: the current minor and
// the one before it. Receivers are therefore rolled out before senders.
func (t Type) Accepts(version string) bool {
	if version == t.Version() {
		return true
	}
	return t.Minor > 0 && version == Type{Major: t.Major, Minor: t.Minor - 1}.Version()
}

// allows reports whether a sender may hand this type to a recipient.
func (t Type) allows(sender, recipient string) bool {
	return slices.Contains(t.Senders, roles.Service(sender)) && slices.Contains(t.Recipients, roles.Service(recipient))
}

// Types gives every known type.
func Types() []Type { return slices.Clone(desk) }

// Lookup gives a type by its name on the wire.
func Lookup(name string) (Type, bool) { return desk.byName(name) }

type registry []Type

func (r registry) byName(name string) (Type, bool) {
	i := slices.IndexFunc(r, func(t Type) bool { return t.Name == name })
	if i < 0 {
		return Type{}, false
	}
	return r[i], true
}

// byPayload gives the type whose payload is of the same message as m.
func (r registry) byPayload(m proto.Message) (Type, bool) {
	want := m.ProtoReflect().Descriptor().FullName()
	i := slices.IndexFunc(r, func(t Type) bool { return t.New().ProtoReflect().Descriptor().FullName() == want })
	if i < 0 {
		return Type{}, false
	}
	return r[i], true
}

// speaks reports whether a sender has any type to send on a subject family.
func (r registry) speaks(sender string, kind subject.Kind) bool {
	return slices.ContainsFunc(r, func(t Type) bool {
		return t.Kind == kind && slices.Contains(t.Senders, roles.Service(sender))
	})
}

var desk = func() registry {
	orchestrator := []roles.Service{roles.Orchestrator}
	workers := []roles.Service{roles.PaymentInvestigator, roles.PolicySpecialist, roles.Composer, roles.Verifier, roles.RefundExecutor}
	intake := func(name string, from roles.Service, payload func() proto.Message) Type {
		return Type{Name: name, Major: 1, New: payload, Kind: subject.KindIntake, Senders: []roles.Service{from}, Recipients: orchestrator}
	}
	result := func(name string, payload func() proto.Message, from ...roles.Service) Type {
		return Type{Name: name, Major: 1, New: payload, Kind: subject.KindResult, Senders: from, Recipients: orchestrator}
	}
	return registry{
		intake(CaseOpened, roles.Gateway, func() proto.Message { return new(amendsv1.CaseOpened) }),
		intake(CaseMessage, roles.Gateway, func() proto.Message { return new(amendsv1.CustomerMessage) }),
		intake(CaseCancel, roles.Gateway, func() proto.Message { return new(amendsv1.CaseCancel) }),
		intake(ProviderEvent, roles.Gateway, func() proto.Message { return new(amendsv1.ProviderEvent) }),
		intake(ApprovalDecision, roles.Console, func() proto.Message { return new(amendsv1.SignedDecision) }),
		intake(CustodyDecision, roles.Console, func() proto.Message { return new(amendsv1.CustodyDecision) }),
		{Name: TaskAssign, Major: 1, Minor: 1, New: func() proto.Message { return new(amendsv1.TaskAssign) }, Kind: subject.KindTask, Senders: orchestrator, Recipients: workers},
		result(PaymentEvidence, func() proto.Message { return new(amendsv1.PaymentEvidence) }, roles.PaymentInvestigator),
		result(PolicyReading, func() proto.Message { return new(amendsv1.PolicyReading) }, roles.PolicySpecialist),
		result(Draft, func() proto.Message { return new(amendsv1.Draft) }, roles.Composer),
		result(Verification, func() proto.Message { return new(amendsv1.Verification) }, roles.Verifier),
		{Name: EffectResult, Major: 1, Minor: 1, New: func() proto.Message { return new(amendsv1.EffectResult) }, Kind: subject.KindResult, Senders: []roles.Service{roles.RefundExecutor}, Recipients: orchestrator},
		result(EffectFinding, func() proto.Message { return new(amendsv1.EffectFinding) }, roles.RefundExecutor),
		result(TaskError, func() proto.Message { return new(amendsv1.TaskError) }, workers...),
		{Name: CaseFinding, Major: 1, New: func() proto.Message { return new(amendsv1.CaseFinding) }, Kind: subject.KindDue, Senders: orchestrator, Recipients: orchestrator},
		{Name: StopLifted, Major: 1, New: func() proto.Message { return new(amendsv1.StopLifted) }, Kind: subject.KindDue, Senders: orchestrator, Recipients: orchestrator},
		{Name: TimerDue, Major: 1, New: func() proto.Message { return new(amendsv1.TimerDue) }, Kind: subject.KindDue, Senders: orchestrator, Recipients: orchestrator},
	}
}()
