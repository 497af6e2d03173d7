package approval_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

var now = time.Date(2026, 3, 12, 10, 14, 1, 0, time.UTC)

func action() *amendsv1.ActionRecord {
	return &amendsv1.ActionRecord{
		Tenant: "acme-in", CaseId: "req-8472", OrderId: "8472", CaseVersion: 5, Proposal: 1,
		Refunds: []*amendsv1.ActionRefund{{
			PaymentId: "pay_8472_b", Amount: money.New(200000, "INR"), Kind: "duplicate_capture",
			IdempotencyKey: approval.Key("req-8472", "pay_8472_b"),
		}},
		EvidenceSha256: strings.Repeat("ab", 32),
		Created:        timestamppb.New(now), Expires: timestamppb.New(now.Add(30 * time.Minute)),
	}
}

func key(t *testing.T, who, id string) approval.Key25519 {
	t.Helper()
	k, err := approval.NewKey(who, id, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func person(k approval.Key25519) approval.Approver {
	return approval.Approver{
		ID: k.ApproverID, Roles: []string{approval.RoleApprover}, Tenants: []string{"acme-in"},
		Limits: []approval.Limit{{Currency: "INR", Minor: 5000000}},
		Keys:   []approval.PublicKey{k.PublicEntry(now.Add(-time.Hour))},
	}
}

func registry(t *testing.T, people ...approval.Approver) *approval.Registry {
	t.Helper()
	r, err := approval.NewRegistry("1", people...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func signed(t *testing.T, k approval.Key25519, a *amendsv1.ActionRecord, n int, verdict amendsv1.Verdict) *amendsv1.SignedDecision {
	t.Helper()
	sum, err := approval.ActionSHA256(a)
	if err != nil {
		t.Fatal(err)
	}
	d := &amendsv1.SignedDecision{
		ApprovalId: approval.ID(a.GetCaseId(), n), Verdict: verdict, Tenant: a.GetTenant(), CaseId: a.GetCaseId(),
		ActionSha256: sum, SignedAt: timestamppb.New(now), Expires: a.GetExpires(),
	}
	if err := approval.Sign(k, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestActionTextIsCanonical(t *testing.T) {
	text, err := approval.ActionText(action())
	if err != nil {
		t.Fatal(err)
	}
	want := `amends-action/1
tenant=acme-in
case=req-8472
case-version=5
proposal=1
order=8472
refund=pay_8472_b INR 200000 duplicate_capture refund:req-8472:pay_8472_b
evidence-sha256=` + strings.Repeat("ab", 32) + `
created=2026-03-12T10:14:01Z
expires=2026-03-12T10:44:01Z
`
	if text != want {
		t.Errorf("text:\n%s\nwant:\n%s", text, want)
	}
}

// Bug B25: any change of the arguments is another action. A missing argument
// is refused, so two incomplete records can never hash alike.
func TestEveryFieldOfAnActionCountsB25(t *testing.T) {
	base, err := approval.ActionSHA256(action())
	if err != nil {
		t.Fatal(err)
	}
	change := map[string]func(*amendsv1.ActionRecord){
		"tenant": func(a *amendsv1.ActionRecord) { a.Tenant = "other" },
		"case": func(a *amendsv1.ActionRecord) {
			a.CaseId, a.Refunds[0].IdempotencyKey = "req-1", approval.Key("req-1", "pay_8472_b")
		},
		"version":  func(a *amendsv1.ActionRecord) { a.CaseVersion = 6 },
		"proposal": func(a *amendsv1.ActionRecord) { a.Proposal = 2 },
		"order":    func(a *amendsv1.ActionRecord) { a.OrderId = "8473" },
		"amount":   func(a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor = 2000000 },
		"currency": func(a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Currency = "USD" },
		"payment": func(a *amendsv1.ActionRecord) {
			a.Refunds[0].PaymentId, a.Refunds[0].IdempotencyKey = "pay_8472_a", approval.Key("req-8472", "pay_8472_a")
		},
		"kind":     func(a *amendsv1.ActionRecord) { a.Refunds[0].Kind = "goodwill" },
		"evidence": func(a *amendsv1.ActionRecord) { a.EvidenceSha256 = strings.Repeat("ac", 32) },
		"created":  func(a *amendsv1.ActionRecord) { a.Created = timestamppb.New(now.Add(time.Nanosecond)) },
		"expires":  func(a *amendsv1.ActionRecord) { a.Expires = timestamppb.New(now.Add(31 * time.Minute)) },
	}
	for name, f := range change {
		a := action()
		f(a)
		got, err := approval.ActionSHA256(a)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got == base {
			t.Errorf("%s changed and the hash did not", name)
		}
	}
	broken := map[string]func(*amendsv1.ActionRecord){
		"no tenant":    func(a *amendsv1.ActionRecord) { a.Tenant = "" },
		"no refunds":   func(a *amendsv1.ActionRecord) { a.Refunds = nil },
		"zero amount":  func(a *amendsv1.ActionRecord) { a.Refunds[0].Amount.Minor = 0 },
		"no amount":    func(a *amendsv1.ActionRecord) { a.Refunds[0].Amount = nil },
		"foreign key":  func(a *amendsv1.ActionRecord) { a.Refunds[0].IdempotencyKey = "refund:req-1:pay_8472_b" },
		"newline":      func(a *amendsv1.ActionRecord) { a.OrderId = "8472\nrefund=x" },
		"space":        func(a *amendsv1.ActionRecord) { a.Refunds[0].PaymentId = "pay x" },
		"no evidence":  func(a *amendsv1.ActionRecord) { a.EvidenceSha256 = "" },
		"no expiry":    func(a *amendsv1.ActionRecord) { a.Expires = nil },
		"expired at 0": func(a *amendsv1.ActionRecord) { a.Expires = a.Created },
		"same payment": func(a *amendsv1.ActionRecord) { a.Refunds = append(a.Refunds, a.Refunds[0]) },
		"two currencies": func(a *amendsv1.ActionRecord) {
			a.Refunds = append(a.Refunds, &amendsv1.ActionRefund{PaymentId: "pay_8472_c", Amount: money.New(1, "USD"), Kind: "x", IdempotencyKey: approval.Key("req-8472", "pay_8472_c")})
		},
	}
	for name, f := range broken {
		a := action()
		f(a)
		if _, err := approval.ActionSHA256(a); err == nil {
			t.Errorf("%s was hashed", name)
		}
	}
}

// AUTH-2, MONEY-2: what a forged, replayed or foreign decision meets.
func TestCheckRefusals(t *testing.T) {
	maya, eve := key(t, "maya", "maya-1"), key(t, "maya", "maya-1")
	reg := registry(t, person(maya))
	a := action()
	for name, c := range map[string]struct {
		decision func() *amendsv1.SignedDecision
		registry *approval.Registry
		at       time.Time
		want     string
	}{
		"valid":       {func() *amendsv1.SignedDecision { return signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE) }, reg, now, ""},
		"another key": {func() *amendsv1.SignedDecision { return signed(t, eve, a, 1, amendsv1.Verdict_VERDICT_APPROVE) }, reg, now, approval.ReasonSignature},
		"unknown approver": {func() *amendsv1.SignedDecision {
			return signed(t, key(t, "bob", "b"), a, 1, amendsv1.Verdict_VERDICT_APPROVE)
		}, reg, now, approval.ReasonUnknownApprover},
		"unknown key": {func() *amendsv1.SignedDecision {
			return signed(t, key(t, "maya", "old"), a, 1, amendsv1.Verdict_VERDICT_APPROVE)
		}, reg, now, approval.ReasonUnknownKey},
		"at expiry":   {func() *amendsv1.SignedDecision { return signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE) }, reg, now.Add(30 * time.Minute), approval.ReasonExpired},
		"just before": {func() *amendsv1.SignedDecision { return signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE) }, reg, now.Add(30*time.Minute - 1), ""},
		"verdict flipped": {func() *amendsv1.SignedDecision {
			d := signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_DENY)
			d.Verdict = amendsv1.Verdict_VERDICT_APPROVE
			return d
		}, reg, now, approval.ReasonSignature},
		"other action": {func() *amendsv1.SignedDecision {
			b := action()
			b.Refunds[0].Amount.Minor = 1
			return signed(t, maya, b, 1, amendsv1.Verdict_VERDICT_APPROVE)
		}, reg, now, approval.ReasonOtherAction},
		"no signature": {func() *amendsv1.SignedDecision {
			d := signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE)
			d.Signature = nil
			return d
		}, reg, now, approval.ReasonSignature},
		"nothing":           {func() *amendsv1.SignedDecision { return &amendsv1.SignedDecision{} }, reg, now, approval.ReasonMalformed},
		"before not_before": {func() *amendsv1.SignedDecision { return signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE) }, reg, now.Add(-2 * time.Hour), approval.ReasonKeyRetired},
	} {
		err := approval.Check(c.registry, a, c.decision(), c.at)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || approval.ReasonOf(err) != c.want):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestCheckHonoursTheRegistry(t *testing.T) {
	maya := key(t, "maya", "maya-1")
	a := action()
	d := signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE)
	for name, c := range map[string]struct {
		change func(*approval.Approver)
		want   string
	}{
		"no role":        {func(p *approval.Approver) { p.Roles = nil }, approval.ReasonRole},
		"other tenant":   {func(p *approval.Approver) { p.Tenants = []string{"other"} }, approval.ReasonTenant},
		"limit below":    {func(p *approval.Approver) { p.Limits[0].Minor = 199999 }, approval.ReasonLimit},
		"limit equal":    {func(p *approval.Approver) { p.Limits[0].Minor = 200000 }, ""},
		"other currency": {func(p *approval.Approver) { p.Limits[0].Currency = "USD" }, approval.ReasonLimit},
		"revoked":        {func(p *approval.Approver) { p.Keys[0].Revoked = true }, approval.ReasonKeyRetired},
		"retired":        {func(p *approval.Approver) { p.Keys[0].NotAfter = now }, approval.ReasonKeyRetired},
	} {
		p := person(maya)
		c.change(&p)
		err := approval.Check(registry(t, p), a, d, now)
		if (c.want == "") != (err == nil) || err != nil && approval.ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestSufficientCountsDifferentApprovers(t *testing.T) {
	maya, ravi := key(t, "maya", "maya-1"), key(t, "ravi", "ravi-1")
	reg := registry(t, person(maya), person(ravi))
	a := action()
	m := signed(t, maya, a, 1, amendsv1.Verdict_VERDICT_APPROVE)
	again := signed(t, maya, a, 2, amendsv1.Verdict_VERDICT_APPROVE)
	r := signed(t, ravi, a, 2, amendsv1.Verdict_VERDICT_APPROVE)
	deny := signed(t, ravi, a, 3, amendsv1.Verdict_VERDICT_DENY)
	for name, c := range map[string]struct {
		ds     []*amendsv1.SignedDecision
		needed int
		want   string
	}{
		"one of one":     {[]*amendsv1.SignedDecision{m}, 1, ""},
		"none":           {nil, 1, approval.ReasonTooFew},
		"one of two":     {[]*amendsv1.SignedDecision{m}, 2, approval.ReasonTooFew},
		"the same twice": {[]*amendsv1.SignedDecision{m, again}, 2, approval.ReasonTooFew},
		"two of two":     {[]*amendsv1.SignedDecision{m, r}, 2, ""},
		"with a denial":  {[]*amendsv1.SignedDecision{m, deny}, 1, approval.ReasonDenied},
		"one id twice":   {[]*amendsv1.SignedDecision{m, m}, 1, approval.ReasonMalformed},
	} {
		_, err := approval.Sufficient(reg, a, c.ds, c.needed, now)
		if (c.want == "") != (err == nil) || err != nil && approval.ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestKeyFileAndRegistryRoundTrip(t *testing.T) {
	k := key(t, "maya", "maya-1")
	file, err := k.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := approval.ParseKey(file)
	if err != nil || back.ApproverID != "maya" || back.KeyID != "maya-1" || !bytes.Equal(back.Private, k.Private) {
		t.Fatalf("ParseKey = %+v, %v", back, err)
	}
	data, err := registry(t, person(k)).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	reg, err := approval.ParseRegistry(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := approval.Check(reg, action(), signed(t, back, action(), 1, amendsv1.Verdict_VERDICT_APPROVE), now); err != nil {
		t.Error(err)
	}
	if _, err := approval.ParseRegistry(append(data, []byte("extra: 1\n")...)); err == nil {
		t.Error("an unknown key was accepted")
	}
	if _, err := approval.ParseRegistry(nil); err == nil {
		t.Error("an empty registry was accepted")
	}
}

func TestSignDoesNotChangeTheAction(t *testing.T) {
	a := action()
	before := proto.Clone(a)
	signed(t, key(t, "maya", "maya-1"), a, 1, amendsv1.Verdict_VERDICT_DENY)
	if !proto.Equal(before, a) {
		t.Error("signing changed the action")
	}
}
