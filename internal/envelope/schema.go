package envelope

import (
	"fmt"
	"sync"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// validator is shared by the whole process: it compiles a message's rules on
// first sight and keeps them.
var validator = sync.OnceValues(func() (protovalidate.Validator, error) {
	return protovalidate.New(
		protovalidate.WithFailFast(),
		protovalidate.WithMessages(new(amendsv1.Envelope), new(amendsv1.CaseCommit), new(amendsv1.TaskAssign)),
	)
})

// Validate checks any message of the desk against the rules of its schema, and
// that each of its enum values and times is one this version knows. The error
// names the first field that breaks a rule and never quotes its value.
func Validate(m proto.Message) error {
	v, err := validator()
	if err != nil {
		return fmt.Errorf("compile the schema rules: %w", err)
	}
	if err := v.Validate(m); err != nil {
		return err
	}
	return wellFormed(m.ProtoReflect())
}

// ValidateCommit checks what is new in a commit: its frame, the envelopes of
// its inputs and the record's own plain fields. What authors put into the
// record was checked when their message came in, and that the case core keeps
// the rules for the rest is shown by its property tests on every commit; doing
// all of it again at every version would cost a tenth of the desk's time.
func ValidateCommit(c *amendsv1.CaseCommit) error {
	v, err := validator()
	if err != nil {
		return fmt.Errorf("compile the schema rules: %w", err)
	}
	return v.Validate(c, protovalidate.WithFilter(frame))
}

var recordName = new(amendsv1.CaseRecord).ProtoReflect().Descriptor().FullName()

// frame leaves out the messages inside a record.
var frame = protovalidate.FilterFunc(func(m protoreflect.Message, d protoreflect.Descriptor) bool {
	f, ok := d.(protoreflect.FieldDescriptor)
	return !ok || f.Message() == nil || m.Descriptor().FullName() != recordName
})

// wellFormed finds enum numbers without a name and times out of range, which
// a schema's rules see only where somebody wrote a rule for them.
func wellFormed(m protoreflect.Message) error {
	if ts, ok := m.Interface().(*timestamppb.Timestamp); ok {
		if ts.CheckValid() != nil { // its text quotes the value
			return fmt.Errorf("not a time")
		}
		return nil
	}
	for _, f := range watchedOf(m.Descriptor()) {
		if !m.Has(f) {
			continue
		}
		if err := known(f, m.Get(f)); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
}

// watched remembers, per message type, the fields that are enums or messages.
var watched sync.Map // protoreflect.FullName to []protoreflect.FieldDescriptor

func watchedOf(d protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	if have, ok := watched.Load(d.FullName()); ok {
		if fields, ok := have.([]protoreflect.FieldDescriptor); ok {
			return fields
		}
	}
	var fields []protoreflect.FieldDescriptor
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); f.Enum() != nil || f.Message() != nil {
			fields = append(fields, f)
		}
	}
	watched.Store(d.FullName(), fields)
	return fields
}

func known(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.IsMap():
		var err error
		v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			err = knownValue(f.MapValue(), v)
			return err == nil
		})
		return err
	case f.IsList():
		for i := range v.List().Len() {
			if err := knownValue(f, v.List().Get(i)); err != nil {
				return err
			}
		}
		return nil
	}
	return knownValue(f, v)
}

func knownValue(f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	switch {
	case f.Message() != nil:
		return wellFormed(v.Message())
	case f.Enum() != nil && f.Enum().Values().ByNumber(v.Enum()) == nil:
		return fmt.Errorf("not a value of %s", f.Enum().Name())
	}
	return nil
}
