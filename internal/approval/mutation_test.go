package approval_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// hostile are values that would run one field into the next where a form does
// not keep them apart.
var hostile = []string{
	"", "a", "b", "a b", "a\n", "\na", "a\nproposed-by=b", "a=b", "=", " ", "a\x00", "a\r", "a\u2028b", "\u0430", "a\u200b", "\xff",
	"refund:a:b", "a INR 1 b refund:a:a", "a\nrefund=a INR 1 b refund:a:a", strings.Repeat("a", 64), strings.Repeat("a", 65),
}

var texts = rapid.OneOf(rapid.SampledFrom(hostile), rapid.SampledFrom([]string{"a", "b", "ab", "acme-in", "pay_1", "pay_2"}), rapid.String())

func moments(t *rapid.T, name string) *timestamppb.Timestamp {
	return &timestamppb.Timestamp{
		Seconds: rapid.SampledFrom([]int64{-1, 0, 1, 1773310441, 1773310442, 1 << 40}).Draw(t, name), Nanos: rapid.SampledFrom([]int32{-1, 0, 1, 10, 100_000_000, 999_999_999}).Draw(t, name+" nanos"),
	}
}

// anyAction draws an action that may or may not be well formed. Half of them
// carry the key their case and payment ask for.
func anyAction(t *rapid.T) *amendsv1.ActionRecord {
	a := &amendsv1.ActionRecord{
		Tenant: texts.Draw(t, "tenant"), CaseId: texts.Draw(t, "case"), OrderId: texts.Draw(t, "order"), ProposedBy: texts.Draw(t, "proposed by"),
		CaseVersion: rapid.Uint64Max(2).Draw(t, "version"), Proposal: rapid.Uint32Max(2).Draw(t, "proposal"),
		EvidenceSha256: rapid.SampledFrom([]string{"", strings.Repeat("ab", 32), strings.Repeat("cd", 32), strings.Repeat("AB", 32)}).Draw(t, "evidence"),
		Created:        moments(t, "created"), Expires: moments(t, "expires"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "refunds") {
		r := &amendsv1.ActionRefund{
			PaymentId: texts.Draw(t, "payment"), Kind: texts.Draw(t, "kind"), IdempotencyKey: texts.Draw(t, "key"),
			Amount: money.New(rapid.SampledFrom([]int64{-1, 0, 1, 11, 200000, 1<<63 - 1}).Draw(t, "minor"), rapid.SampledFrom([]string{"", "INR", "JPY", "inr", "IN R"}).Draw(t, "currency")),
		}
		if rapid.Bool().Draw(t, "own key") {
			r.IdempotencyKey = approval.Key(a.GetCaseId(), r.GetPaymentId())
		}
		a.Refunds = append(a.Refunds, r)
	}
	return a
}

// MONEY-2, B25: the canonical text can be read back, field for field, so no two
// actions share one. What cannot be written so has no text at all.
func TestActionTextCanBeReadBackB25(t *testing.T) {
	readable := 0
	rapid.Check(t, func(t *rapid.T) {
		a := anyAction(t)
		if rapid.Bool().Draw(t, "well formed") { // else almost none is
			good := action()
			good.ProposedBy = rapid.SampledFrom([]string{"", "sam"}).Draw(t, "custodian")
			fields := a.ProtoReflect().Descriptor().Fields()
			f := fields.Get(rapid.IntRange(0, fields.Len()-1).Draw(t, "field"))
			if a.ProtoReflect().Has(f) {
				good.ProtoReflect().Set(f, a.ProtoReflect().Get(f))
			} else {
				good.ProtoReflect().Clear(f)
			}
			a = good
		}
		text, err := approval.ActionText(a)
		if err != nil {
			return
		}
		readable++
		if back := parseAction(t, text); !proto.Equal(back, a) {
			t.Fatalf("%v reads back as %v", a, back)
		}
	})
	if readable == 0 {
		t.Error("no action had a text: the property saw nothing")
	}
}

func parseAction(t *rapid.T, text string) *amendsv1.ActionRecord {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	a := &amendsv1.ActionRecord{}
	for _, l := range lines[1:] {
		name, value, ok := strings.Cut(l, "=")
		if !ok || value == "" {
			t.Fatalf("line %q", l)
		}
		switch name {
		case "tenant":
			a.Tenant = value
		case "case":
			a.CaseId = value
		case "case-version":
			a.CaseVersion = number[uint64](t, value)
		case "proposal":
			a.Proposal = number[uint32](t, value)
		case "proposed-by":
			a.ProposedBy = value
		case "order":
			a.OrderId = value
		case "refund":
			w := strings.Split(value, " ")
			if len(w) != 5 {
				t.Fatalf("refund %q", value)
			}
			a.Refunds = append(a.Refunds, &amendsv1.ActionRefund{PaymentId: w[0], Amount: money.New(number[int64](t, w[2]), w[1]), Kind: w[3], IdempotencyKey: w[4]})
		case "evidence-sha256":
			a.EvidenceSha256 = value
		case "created":
			a.Created = instant(t, value)
		case "expires":
			a.Expires = instant(t, value)
		default:
			t.Fatalf("line %q", l)
		}
	}
	if want := map[bool]string{false: "amends-action/1", true: "amends-action/2"}[a.GetProposedBy() != ""]; lines[0] != want {
		t.Fatalf("version %q", lines[0])
	}
	return a
}

func number[T ~int64 | ~uint32 | ~uint64](t *rapid.T, s string) T {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return T(n)
}

func instant(t *rapid.T, s string) *timestamppb.Timestamp {
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return timestamppb.New(at)
}

// AUTH-2, B25: there is no field of an action or of a decision, and no byte of
// a signature, that can be changed or left out after somebody signed. A field
// that is added to either and does not reach the text is found here.
func TestEveryMutationIsRefusedAUTH2B25(t *testing.T) {
	maya := key(t, "maya", "maya-1")
	who := person(maya)
	who.Tenants = append(who.Tenants, "acme-inx") // so that not the tenant list refuses
	second := maya
	second.KeyID = "maya-1x"
	who.Keys = append(who.Keys, second.PublicEntry(now.Add(-time.Hour)))
	twin := approval.Approver{ID: "mayax", Roles: who.Roles, Tenants: who.Tenants, Limits: who.Limits, Keys: []approval.PublicKey{key(t, "mayax", "maya-1").PublicEntry(now.Add(-time.Hour))}}
	reg := registry(t, who, twin)
	a := action()
	a.ProposedBy = "sam"
	c := proto.CloneOf(a.GetRefunds()[0])
	c.PaymentId, c.IdempotencyKey = "pay_8472_c", approval.Key("req-8472", "pay_8472_c")
	a.Refunds = append(a.Refunds, c)
	d := signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE)
	d.Reason = "ok"
	if err := approval.Sign(maya, d); err != nil {
		t.Fatal(err)
	}
	check := func(what string, a *amendsv1.ActionRecord, d *amendsv1.SignedDecision) {
		t.Helper()
		if err := approval.Check(reg, a, d, now); err == nil {
			t.Errorf("%s: still counts", what)
		}
	}
	if err := approval.Check(reg, a, d, now); err != nil {
		t.Fatalf("untouched: %v", err)
	}
	tried := 0
	for _, m := range mutations(a) {
		check("action: "+m.what, as(t, m.changed, a), d)
		tried++
	}
	for _, m := range mutations(d) {
		check("decision: "+m.what, a, as(t, m.changed, d))
		tried++
	}
	for i := range d.GetSignature() {
		for bit := range 8 {
			forged := proto.CloneOf(d)
			forged.Signature[i] ^= 1 << bit
			check(fmt.Sprintf("bit %d of signature byte %d", bit, i), a, forged)
			tried++
		}
	}
	if tried < 512+60 {
		t.Errorf("only %d mutations", tried)
	}
}

func as[M proto.Message](t *testing.T, m proto.Message, _ M) M {
	t.Helper()
	out, ok := m.(M)
	if !ok {
		t.Fatalf("%T", m)
	}
	return out
}

type mutation struct {
	what    string
	changed proto.Message
}

// mutations gives copies of m with one thing changed: every field at every
// depth left out and altered, every list shortened, doubled and turned round.
func mutations(m proto.Message) []mutation {
	var out []mutation
	var walk func(path string, get func(root protoreflect.Message) protoreflect.Message)
	walk = func(path string, get func(protoreflect.Message) protoreflect.Message) {
		here := get(m.ProtoReflect())
		edit := func(what string, f func(protoreflect.Message)) {
			c := proto.Clone(m)
			f(get(c.ProtoReflect()))
			if !proto.Equal(c, m) {
				out = append(out, mutation{what, c})
			}
		}
		fields := here.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			name := path + string(f.Name())
			edit(name+" left out", func(p protoreflect.Message) { p.Clear(f) })
			switch {
			case f.IsList():
				n := here.Get(f).List().Len()
				edit(name+" shortened", func(p protoreflect.Message) { p.Mutable(f).List().Truncate(n - 1) })
				edit(name+" doubled", func(p protoreflect.Message) { l := p.Mutable(f).List(); l.Append(l.Get(0)) })
				edit(name+" turned round", func(p protoreflect.Message) {
					l := p.Mutable(f).List()
					x, y := proto.Clone(l.Get(0).Message().Interface()), proto.Clone(l.Get(n-1).Message().Interface())
					l.Set(0, protoreflect.ValueOfMessage(y.ProtoReflect()))
					l.Set(n-1, protoreflect.ValueOfMessage(x.ProtoReflect()))
				})
				for j := range n {
					walk(fmt.Sprintf("%s[%d].", name, j), func(root protoreflect.Message) protoreflect.Message {
						return get(root).Mutable(f).List().Get(j).Message()
					})
				}
			case f.Message() != nil:
				walk(name+".", func(root protoreflect.Message) protoreflect.Message { return get(root).Mutable(f).Message() })
			default:
				for _, v := range others(f, here.Get(f)) {
					edit(fmt.Sprintf("%s = %v", name, v), func(p protoreflect.Message) { p.Set(f, v) })
				}
			}
		}
	}
	walk("", func(root protoreflect.Message) protoreflect.Message { return root })
	return out
}

// others gives values near one a field has.
func others(f protoreflect.FieldDescriptor, v protoreflect.Value) []protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		s := v.String()
		out := []protoreflect.Value{protoreflect.ValueOfString(s + "x"), protoreflect.ValueOfString(s + "\n"), protoreflect.ValueOfString(s + " "), protoreflect.ValueOfString(strings.ToUpper(s))}
		if s != "" {
			out = append(out, protoreflect.ValueOfString(s[1:]), protoreflect.ValueOfString("\u200b"+s))
		}
		return out
	case protoreflect.Int64Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt64(v.Int() + 1), protoreflect.ValueOfInt64(-v.Int()), protoreflect.ValueOfInt64(v.Int() * 10)}
	case protoreflect.Int32Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt32(int32(v.Int()) + 1)}
	case protoreflect.Uint64Kind:
		return []protoreflect.Value{protoreflect.ValueOfUint64(v.Uint() + 1), protoreflect.ValueOfUint64(v.Uint() | 1<<63)}
	case protoreflect.Uint32Kind:
		return []protoreflect.Value{protoreflect.ValueOfUint32(uint32(v.Uint()) + 1), protoreflect.ValueOfUint32(uint32(v.Uint()) | 1<<31)}
	case protoreflect.EnumKind:
		return []protoreflect.Value{protoreflect.ValueOfEnum(v.Enum() + 1), protoreflect.ValueOfEnum(v.Enum() + 100)}
	case protoreflect.BytesKind:
		b := v.Bytes()
		return []protoreflect.Value{protoreflect.ValueOfBytes(append([]byte{0}, b...)), protoreflect.ValueOfBytes(b[:len(b)-1])}
	default:
		panic("a field of kind " + f.Kind().String() + " needs values here")
	}
}

// Texts of different purpose are never the same, so a signature under one is
// none under another: a custody decision approves nothing.
func TestTextsOfOnePurposeAreNotOfAnother(t *testing.T) {
	a, err := approval.ActionText(action())
	if err != nil {
		t.Fatal(err)
	}
	d, err := approval.DecisionText(signed(t, key(t, "maya", "maya-1"), action(), 1, amendsv1.Verdict_VERDICT_APPROVE))
	if err != nil {
		t.Fatal(err)
	}
	p := proposal()
	if err := approval.SignCustody(key(t, "maya", "maya-1"), p); err != nil {
		t.Fatal(err)
	}
	c, err := approval.CustodyText(p)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, text := range []string{a, d, c} {
		first, _, _ := strings.Cut(text, "/")
		if seen[first] {
			t.Errorf("two purposes begin with %q", first)
		}
		seen[first] = true
	}
}

// MONEY-2: two approvers are two people. A registry in which one key stands
// for two of them, or one key id for two keys, is none.
func TestARegistryKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	maya, ravi := key(t, "maya", "k1"), key(t, "ravi", "k1")
	m, r := person(maya), person(ravi)
	if _, err := approval.NewRegistry("1", m, r); err != nil {
		t.Errorf("two people with a key each: %v", err)
	}
	shared := r
	shared.Keys = append(shared.Keys[:1:1], approval.PublicKey{ID: "k2", Public: m.Keys[0].Public})
	if _, err := approval.NewRegistry("1", m, shared); err == nil {
		t.Error("one key of two people was accepted")
	}
	twice := m
	twice.Keys = append(twice.Keys[:1:1], approval.PublicKey{ID: "k1", Public: r.Keys[0].Public})
	if _, err := approval.NewRegistry("1", twice); err == nil {
		t.Error("two keys under one id were accepted")
	}
}
