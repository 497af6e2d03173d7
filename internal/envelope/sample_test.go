package envelope_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var received = time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)

// header is a valid envelope for a type, without payload.
func header(t envelope.Type) *amendsv1.Envelope {
	return &amendsv1.Envelope{
		MessageId: ident.Derive(received, t.Name), CaseId: "req-8472", Tenant: "acme-in", RequestId: "req-8472",
		TaskId: "task-8472-pay", ParentTaskId: "task-8472-root",
		Sender: string(t.Senders[0]), Recipient: string(t.Recipients[0]), Type: t.Name, SchemaVersion: t.Version(),
		Purpose: "find what happened", CustomerId: "cust_5519", Capability: "payments.read",
		Deadline: timestamppb.New(received.Add(30 * time.Second)), Attempt: 2, IdempotencyKey: "task-8472-pay",
		BasedOnVersion: 4, TraceId: "tr-7f3a91", Hop: 1, SentAt: timestamppb.New(received),
	}
}

// on is the subject an envelope belongs on.
func on(env *amendsv1.Envelope) subject.Parts {
	t, _ := envelope.Lookup(env.GetType())
	p := subject.Parts{Kind: t.Kind, Tenant: env.GetTenant(), CaseID: env.GetCaseId()}
	switch t.Kind {
	case subject.KindTask:
		p.Recipient = env.GetRecipient()
	case subject.KindDue:
	default:
		p.Sender = env.GetSender()
	}
	return p
}

// samples gives valid payloads of a type that between them set every field of
// every message inside, take every branch of a oneof, and give every bool both
// values.
func samples(t testing.TB, ty envelope.Type) []proto.Message {
	t.Helper()
	n := 2
	oneofs := ty.New().ProtoReflect().Descriptor().Oneofs()
	for i := range oneofs.Len() {
		n = max(n, oneofs.Get(i).Fields().Len())
	}
	out := make([]proto.Message, n)
	for variant := range out {
		out[variant] = ty.New()
		fill(t, out[variant].ProtoReflect(), variant)
	}
	return out
}

func fill(t testing.TB, m protoreflect.Message, variant int) {
	t.Helper()
	if ts, ok := m.Interface().(*timestamppb.Timestamp); ok {
		proto.Merge(ts, timestamppb.New(received.Add(time.Duration(variant)*time.Minute)))
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if o := f.ContainingOneof(); o != nil && o.Fields().Get(variant%o.Fields().Len()) != f {
			continue
		}
		rules, err := protovalidate.ResolveFieldRules(f)
		if err != nil {
			t.Fatalf("%s: %v", f.FullName(), err)
		}
		if !f.IsList() {
			m.Set(f, value(t, m.NewField(f), f, rules, variant))
			continue
		}
		list := m.Mutable(f).List()
		for j := range 2 {
			list.Append(value(t, list.NewElement(), f, rules.GetRepeated().GetItems(), variant+j))
		}
	}
}

// value gives a valid value that depends on the field's name and number, so
// that two fields never look alike.
func value(t testing.TB, empty protoreflect.Value, f protoreflect.FieldDescriptor, rules *validate.FieldRules, variant int) protoreflect.Value {
	t.Helper()
	number := uint64(f.Number())
	switch f.Kind() {
	case protoreflect.MessageKind:
		fill(t, empty.Message(), variant)
		return empty
	case protoreflect.EnumKind:
		values := f.Enum().Values() // the first is UNSPECIFIED
		return protoreflect.ValueOfEnum(values.Get(1 + variant%(values.Len()-1)).Number())
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool((int(number)+variant)%2 == 1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text(f, rules.GetString()))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(strings.Repeat(string(f.Name()), 64))[:max(2, rules.GetBytes().GetLen())])
	case protoreflect.Uint32Kind:
		if r := rules.GetUint32(); r.HasLte() {
			number = min(number, uint64(r.GetLte()))
		}
		return protoreflect.ValueOfUint32(uint32(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(number)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(number))
	}
	t.Fatalf("%s: no sample for a %s", f.FullName(), f.Kind())
	return protoreflect.Value{}
}

func text(f protoreflect.FieldDescriptor, r *validate.StringRules) string {
	sum := sha256.Sum256([]byte(f.FullName()))
	s := string(f.Name())
	switch {
	case f.Name() == "currency" || f.Name() == "cost_currency":
		return "INR"
	case r.GetLen() > 0:
		return hex.EncodeToString(sum[:])[:r.GetLen()]
	case r.HasMaxLen():
		return s[:min(uint64(len(s)), r.GetMaxLen())]
	}
	return s
}

// seal closes a payload in a valid envelope.
func seal(t testing.TB, env *amendsv1.Envelope, payload proto.Message) []byte {
	t.Helper()
	data, err := envelope.Seal(env, payload)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
