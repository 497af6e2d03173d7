package approval_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func custodian(k approval.Key25519) approval.Approver {
	p := person(k)
	p.Roles = []string{approval.RoleCustodian}
	return p
}

func proposal() *amendsv1.CustodyDecision {
	return &amendsv1.CustodyDecision{
		Tenant: "acme-in", CaseId: "req-8472", Step: amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE, PacketSha256: strings.Repeat("ab", 32),
		SignedAt: timestamppb.New(now), Reason: "the lamp came broken",
		Refunds: []*amendsv1.ActionRefund{{
			PaymentId: "pay_8472_b", Amount: money.New(45000, "INR"), Kind: approval.KindGoodwill, IdempotencyKey: approval.Key("req-8472", "pay_8472_b"),
		}},
	}
}

func TestCustodyTextIsCanonical(t *testing.T) {
	t.Parallel()
	d := proposal()
	d.CustodianId, d.KeyId = "sam", "k1"
	text, err := approval.CustodyText(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `amends-custody/1
step=propose
tenant=acme-in
case=req-8472
packet-sha256=` + strings.Repeat("ab", 32) + `
custodian=sam
key=k1
signed-at=2026-03-12T10:14:01Z
refund=pay_8472_b INR 45000 goodwill refund:req-8472:pay_8472_b
text=""
reason="the lamp came broken"
`
	if text != want {
		t.Errorf("the text is\n%s\nwant\n%s", text, want)
	}
}

// A settlement reads by version 2; what has no settlement keeps its bytes.
func TestSettlementTextIsCanonical(t *testing.T) {
	t.Parallel()
	d := settlement()
	d.CustodianId, d.KeyId = "sam", "k1"
	text, err := approval.CustodyText(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `amends-custody/2
step=settle
tenant=acme-in
case=req-8472
packet-sha256=` + strings.Repeat("ab", 32) + `
custodian=sam
key=k1
signed-at=2026-03-12T10:14:01Z
settle=refund:req-8472:pay_8472_a -
settle=refund:req-8472:pay_8472_b rf_5521
text=""
reason="seen at the provider"
`
	if text != want {
		t.Errorf("the text is\n%s\nwant\n%s", text, want)
	}
}

func settlement() *amendsv1.CustodyDecision {
	return &amendsv1.CustodyDecision{
		Tenant: "acme-in", CaseId: "req-8472", Step: amendsv1.CustodyStep_CUSTODY_STEP_SETTLE, PacketSha256: strings.Repeat("ab", 32),
		SignedAt: timestamppb.New(now), Reason: "seen at the provider",
		Settlements: []*amendsv1.Settlement{
			{IdempotencyKey: approval.Key("req-8472", "pay_8472_a")},
			{IdempotencyKey: approval.Key("req-8472", "pay_8472_b"), RefundId: "rf_5521"},
		},
	}
}

func TestSettlementsThatAreNone(t *testing.T) {
	t.Parallel()
	k := key(t, "sam", "k1")
	for name, change := range map[string]func(*amendsv1.CustodyDecision){
		"none":               func(d *amendsv1.CustodyDecision) { d.Settlements = nil },
		"another case's key": func(d *amendsv1.CustodyDecision) { d.Settlements[1].IdempotencyKey = "refund:req-1:pay_8472_b" },
		"no payment":         func(d *amendsv1.CustodyDecision) { d.Settlements[1].IdempotencyKey = "refund:req-8472:" },
		"twice":              func(d *amendsv1.CustodyDecision) { d.Settlements[0] = d.GetSettlements()[1] },
		"out of order": func(d *amendsv1.CustodyDecision) {
			d.Settlements[0], d.Settlements[1] = d.GetSettlements()[1], d.GetSettlements()[0]
		},
		"a line more":         func(d *amendsv1.CustodyDecision) { d.Settlements[1].RefundId = "rf_1\ntext=\"\"" },
		"the sign for none":   func(d *amendsv1.CustodyDecision) { d.Settlements[1].RefundId = "-" },
		"one refund for both": func(d *amendsv1.CustodyDecision) { d.Settlements[0].RefundId = "rf_5521" },
		"settled by another":  func(d *amendsv1.CustodyDecision) { d.Step = amendsv1.CustodyStep_CUSTODY_STEP_DECLINE },
		"resolved without note": func(d *amendsv1.CustodyDecision) {
			d.Step, d.Settlements, d.Reason = amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE, nil, " "
		},
	} {
		d := settlement()
		change(d)
		if err := approval.SignCustody(k, d); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
	signed := settlement()
	if err := approval.SignCustody(k, signed); err != nil {
		t.Fatal(err)
	}
	signed.Settlements[1].RefundId = "rf_9"
	if err := approval.CheckCustody(registry(t, custodian(k)), "acme-in", "req-8472", signed, now); approval.ReasonOf(err) != approval.ReasonSignature {
		t.Errorf("another refund than the one signed: %v", err)
	}
}

// Whatever is changed of what was signed, the signature no longer fits.
func TestEveryFieldOfACustodyDecisionCounts(t *testing.T) {
	t.Parallel()
	k := key(t, "sam", "k1")
	reg := registry(t, custodian(k), custodian(key(t, "lee", "k1")))
	signed := proposal()
	if err := approval.SignCustody(k, signed); err != nil {
		t.Fatal(err)
	}
	if err := approval.CheckCustody(reg, "acme-in", "req-8472", signed, now); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*amendsv1.CustodyDecision){
		"amount":    func(d *amendsv1.CustodyDecision) { d.Refunds[0].Amount.Minor = 450000 },
		"currency":  func(d *amendsv1.CustodyDecision) { d.Refunds[0].Amount.Currency = "JPY" },
		"kind":      func(d *amendsv1.CustodyDecision) { d.Refunds[0].Kind = approval.KindDuplicate },
		"more":      func(d *amendsv1.CustodyDecision) { d.Refunds = append(d.Refunds, d.GetRefunds()[0]) },
		"step":      func(d *amendsv1.CustodyDecision) { d.Step, d.Refunds = amendsv1.CustodyStep_CUSTODY_STEP_DECLINE, nil },
		"packet":    func(d *amendsv1.CustodyDecision) { d.PacketSha256 = strings.Repeat("cd", 32) },
		"custodian": func(d *amendsv1.CustodyDecision) { d.CustodianId = "lee" },
		"time":      func(d *amendsv1.CustodyDecision) { d.SignedAt = timestamppb.New(now.Add(time.Second)) },
		"reason":    func(d *amendsv1.CustodyDecision) { d.Reason = "" },
		"signature": func(d *amendsv1.CustodyDecision) { d.Signature = make([]byte, 64) },
	} {
		d := proto.CloneOf(signed)
		change(d)
		if err := approval.CheckCustody(reg, "acme-in", "req-8472", d, now); approval.ReasonOf(err) != approval.ReasonSignature || err == nil {
			t.Errorf("%s changed: %v", name, err)
		}
	}
}

func TestCustodyRefusals(t *testing.T) {
	t.Parallel()
	k := key(t, "sam", "k1")
	for name, c := range map[string]struct {
		who    func(*approval.Approver)
		change func(*amendsv1.CustodyDecision)
		tenant string
		at     time.Time
		want   string
	}{
		"approvers are no custodians": {who: func(a *approval.Approver) { a.Roles = []string{approval.RoleApprover} }, want: approval.ReasonRole},
		"other tenant's people":       {who: func(a *approval.Approver) { a.Tenants = []string{"other"} }, want: approval.ReasonTenant},
		"another tenant's case":       {tenant: "other", want: approval.ReasonOtherCase},
		"revoked key":                 {who: func(a *approval.Approver) { a.Keys[0].Revoked = true }, want: approval.ReasonKeyRetired},
		"key not valid yet":           {at: now.Add(-2 * time.Hour), want: approval.ReasonKeyRetired},
		"text without a place":        {change: func(d *amendsv1.CustodyDecision) { d.Text = "hello" }, want: approval.ReasonMalformed},
		"nothing proposed":            {change: func(d *amendsv1.CustodyDecision) { d.Refunds = nil }, want: approval.ReasonMalformed},
		"nothing":                     {change: func(d *amendsv1.CustodyDecision) { d.Refunds[0].Amount.Minor = 0 }, want: approval.ReasonMalformed},
		"kind nobody knows":           {change: func(d *amendsv1.CustodyDecision) { d.Refunds[0].Kind = "bonus" }, want: approval.ReasonMalformed},
		"a key of another case":       {change: func(d *amendsv1.CustodyDecision) { d.Refunds[0].IdempotencyKey = "refund:x:y" }, want: approval.ReasonMalformed},
		"a step nobody knows":         {change: func(d *amendsv1.CustodyDecision) { d.Step = 99 }, want: approval.ReasonMalformed},
	} {
		p := custodian(k)
		if c.who != nil {
			c.who(&p)
		}
		d := proposal()
		if err := approval.SignCustody(k, d); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(d)
		}
		tenant, at := "acme-in", now
		if c.tenant != "" {
			tenant = c.tenant
		}
		if !c.at.IsZero() {
			at = c.at
		}
		if err := approval.CheckCustody(registry(t, p), tenant, "req-8472", d, at); err == nil || approval.ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
