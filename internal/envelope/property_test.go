package envelope_test

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/subject"
)

func TestWhateverSealAcceptsOpenAccepts(t *testing.T) {
	t.Parallel()
	all := map[string][]proto.Message{}
	for _, ty := range envelope.Types() {
		all[ty.Name] = samples(t, ty)
	}
	accepted := 0
	rapid.Check(t, func(rt *rapid.T) {
		ty := rapid.SampledFrom(envelope.Types()).Draw(rt, "type")
		env, payload := header(ty), proto.Clone(rapid.SampledFrom(all[ty.Name]).Draw(rt, "payload"))
		for range rapid.IntRange(0, 3).Draw(rt, "mutations") {
			target := payload.ProtoReflect()
			if rapid.Bool().Draw(rt, "envelope") {
				target = env.ProtoReflect()
			}
			mutate(rt, target)
		}
		data, err := envelope.Seal(env, payload)
		if err != nil {
			return
		}
		accepted++
		at := received
		if env.GetDeadline() != nil {
			at = env.GetDeadline().AsTime()
		}
		got, back, err := envelope.Open(data, on(env), at)
		if err != nil {
			rt.Fatalf("sealed but not opened: %v", err)
		}
		if !proto.Equal(got, env) || !proto.Equal(back, payload) {
			rt.Fatal("came back different")
		}
		if again, err := envelope.Seal(env, payload); err != nil || !bytes.Equal(again, data) {
			rt.Fatalf("sealed twice into different bytes: %v", err)
		}
	})
	if accepted == 0 {
		t.Error("no mutated message was accepted: the property says nothing")
	}
}

// mutate changes one field somewhere in m, often into something invalid.
func mutate(t *rapid.T, m protoreflect.Message) {
	f := rapid.SampledFrom(fieldsOf(m)).Draw(t, "field")
	switch {
	case rapid.IntRange(0, 9).Draw(t, "clear") == 0:
		m.Clear(f)
	case f.IsList():
		list := m.Mutable(f).List()
		if n := list.Len(); n > 0 {
			list.Set(0, scalar(t, f, list.Get(n-1)))
			list.Truncate(rapid.IntRange(0, n).Draw(t, "length"))
		}
	default:
		m.Set(f, scalar(t, f, current(m, f)))
	}
}

func fieldsOf(m protoreflect.Message) []protoreflect.FieldDescriptor {
	var out []protoreflect.FieldDescriptor
	for i := range m.Descriptor().Fields().Len() {
		out = append(out, m.Descriptor().Fields().Get(i))
	}
	return out
}

func scalar(t *rapid.T, f protoreflect.FieldDescriptor, old protoreflect.Value) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if ts, ok := old.Message().Interface().(*timestamppb.Timestamp); ok {
			ts.Seconds, ts.Nanos = rapid.Int64().Draw(t, "seconds"), rapid.Int32().Draw(t, "nanos")
			return old
		}
		mutate(t, old.Message())
		return old
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(-1, 24).Draw(t, "enum")))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "bool"))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.String().Draw(t, "string"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, "uint32"))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, "uint64"))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "int64"))
	}
	t.Fatalf("%s: no mutation for a %s", f.FullName(), f.Kind())
	return old
}

func TestOpenNeverPanics(t *testing.T) {
	t.Parallel()
	kinds := []subject.Kind{subject.KindIntake, subject.KindTask, subject.KindResult, subject.KindDue, subject.KindCase, ""}
	tokens := []string{"", "gateway", "console", "composer", "orchestrator", "acme-in", "req-8472"}
	rapid.Check(t, func(rt *rapid.T) {
		token := func(name string) string { return rapid.SampledFrom(tokens).Draw(rt, name) }
		data := rapid.SliceOf(rapid.Byte()).Draw(rt, "data")
		subj := subject.Parts{
			Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Sender: token("sender"), Recipient: token("recipient"),
			Tenant: token("tenant"), CaseID: token("case"),
		}
		_, _, err := envelope.Open(data, subj, received)
		var rej *envelope.Rejection
		if err != nil && !errors.As(err, &rej) {
			rt.Fatalf("an error without a reason: %v", err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	for _, ty := range envelope.Types() {
		for _, payload := range samples(f, ty) {
			env := header(ty)
			f.Add(seal(f, env, payload), string(ty.Kind), env.GetSender(), env.GetRecipient())
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, kind, sender, recipient string) {
		subj := subject.Parts{Kind: subject.Kind(kind), Sender: sender, Recipient: recipient, Tenant: "acme-in", CaseID: "req-8472"}
		env, payload, err := envelope.Open(data, subj, received)
		if err != nil {
			return
		}
		if _, err := envelope.Seal(env, payload); err != nil {
			t.Errorf("opened but not sealed again: %v", err)
		}
	})
}

// current is the value of a field, with an empty message where there is none.
func current(m protoreflect.Message, f protoreflect.FieldDescriptor) protoreflect.Value {
	if f.Kind() == protoreflect.MessageKind {
		return m.Mutable(f)
	}
	return m.Get(f)
}
