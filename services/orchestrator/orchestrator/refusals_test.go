package orchestrator

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casestore"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// cutOff is a store after whose commit the handling can send nothing more.
type cutOff struct {
	*casestore.Memory
	end context.CancelFunc
}

func (c cutOff) Commit(ctx context.Context, commit *amendsv1.CaseCommit, expect uint64) (uint64, error) {
	defer c.end()
	return c.Memory.Commit(ctx, commit, expect)
}

// An input whose commit stands and whose messages are not known to be sent is
// not acknowledged, and sends them when it comes again (LOSS-2).
func TestWhatCouldNotBeSentIsSentOnRedelivery(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := d.build(cutOff{casestore.NewMemory(), cancel})
	m := d.post("req-8472")
	if err := o.handle(ctx, m); err == nil {
		t.Fatal("the input is acknowledged, and nobody knows whether its tasks were sent")
	}
	if rec := d.load(o, "req-8472"); rec.GetVersion() != 2 {
		t.Fatalf("the record is at version %d", rec.GetVersion())
	}
	d.broker.Purge(roles.StreamTasks, roles.StreamViews, roles.StreamTimers)
	m.Delivered = 2
	if err := o.handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	// What was on the wire when the first try was cut off may have come after the
	// purge: a repeat is the same work.
	for _, who := range []roles.Service{roles.PaymentInvestigator, roles.PolicySpecialist} {
		if n := d.broker.Count(roles.StreamTasks, "task."+string(who)+".>"); n < 1 || n > 2 {
			t.Errorf("%d tasks were sent to %s, want one, or the same one twice", n, who)
		}
	}
	if rec := d.load(o, "req-8472"); rec.GetVersion() != 2 {
		t.Errorf("the redelivery made version %d", rec.GetVersion())
	}
}

// A decision counts only with the signature of somebody the registry lists,
// over exactly the action proposed: the console that relays it is not believed
// (APPROVAL-1, AUTH-2).
func TestDecisionsAreVerifiedAndNotBelieved(t *testing.T) {
	t.Parallel()
	now := time.Now()
	maya, err := approval.NewKey("maya", "maya-1", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mallory, err := approval.NewKey("maya", "maya-1", rand.Reader) // her name, another key
	if err != nil {
		t.Fatal(err)
	}
	registry, err := approval.NewRegistry("1", approval.Approver{
		ID: "maya", Roles: []string{approval.RoleApprover}, Tenants: []string{"acme-in"},
		Limits: []approval.Limit{{Currency: "INR", Minor: 5000000}}, Keys: []approval.PublicKey{maya.PublicEntry(now.Add(-time.Hour))},
	})
	if err != nil {
		t.Fatal(err)
	}
	action := func(minor int64) *amendsv1.ActionRecord {
		return &amendsv1.ActionRecord{
			Tenant: "acme-in", CaseId: "req-8472", OrderId: "8472", CaseVersion: 5, Proposal: 1, EvidenceSha256: strings.Repeat("ab", 32),
			Refunds: []*amendsv1.ActionRefund{{PaymentId: "pay_8472_b", Amount: money.New(minor, "INR"), Kind: "duplicate_capture", IdempotencyKey: approval.Key("req-8472", "pay_8472_b")}},
			Created: timestamppb.New(now), Expires: timestamppb.New(now.Add(30 * time.Minute)),
		}
	}
	signed := func(k approval.Key25519, a *amendsv1.ActionRecord) *amendsv1.SignedDecision {
		sum, err := approval.ActionSHA256(a)
		if err != nil {
			t.Fatal(err)
		}
		d := &amendsv1.SignedDecision{
			ApprovalId: "apr-8472-1", Verdict: amendsv1.Verdict_VERDICT_APPROVE, Tenant: "acme-in", CaseId: "req-8472", ActionSha256: sum,
			SignedAt: timestamppb.New(now), Expires: a.GetExpires(),
		}
		if err := approval.Sign(k, d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	rec := &amendsv1.CaseRecord{Tenant: "acme-in", CaseId: "req-8472", Action: action(200000)}
	in := &casework.Input{AppliedInput: &amendsv1.AppliedInput{BrokerTime: timestamppb.New(now)}}
	if got := checkApprover(registry, in, rec, signed(maya, rec.GetAction())); !got.GetValid() || got.GetApproverId() != "maya" {
		t.Errorf("maya's own approval: %v", got)
	}
	for name, d := range map[string]*amendsv1.SignedDecision{
		"another key":    signed(mallory, rec.GetAction()),
		"another amount": signed(maya, action(300000)),
	} {
		if got := checkApprover(registry, in, rec, d); got.GetValid() || got.GetReason() == "" {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := checkApprover(registry, in, &amendsv1.CaseRecord{Tenant: "acme-in", CaseId: "req-8472"}, signed(maya, action(200000))); got.GetValid() {
		t.Errorf("nothing is proposed: %v", got)
	}

	step := &amendsv1.CustodyDecision{
		Step: amendsv1.CustodyStep_CUSTODY_STEP_TAKE, Tenant: "acme-in", CaseId: "req-8472", PacketSha256: strings.Repeat("ab", 32), SignedAt: timestamppb.New(now),
	}
	if err := approval.SignCustody(mallory, step); err != nil {
		t.Fatal(err)
	}
	if got := checkCustodian(registry, in, rec, step); got.GetValid() || got.GetReason() == "" {
		t.Errorf("custody taken with another key: %v", got)
	}
}

// A signature is judged by the registry's file as it is now: who was added
// counts, who was taken out does not. While it is no registry decisions wait
// (AUTH-2, LOSS-2).
func TestTheRegistryIsAsItsFileIsNowAUTH2(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	sam, err := approval.NewKey("sam", "sam-1", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	registry := func(people ...approval.Approver) []byte {
		r, err := approval.NewRegistry("1", people...)
		if err != nil {
			t.Fatal(err)
		}
		data, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	file := registry()
	f, err := approval.NewFile(func() ([]byte, error) { return file, nil })
	if err != nil {
		t.Fatal(err)
	}
	o := d.build(nil)
	o.registry = current(f, slog.New(slog.DiscardHandler))
	id := ident.FindingCase(ident.Finding("acme-in", "refund_missing", "8472", "rf_9"))
	if err := o.handle(t.Context(), d.found(id, "refund_missing")); err != nil {
		t.Fatal(err)
	}
	takes := func() error {
		step := &amendsv1.CustodyDecision{
			Step: amendsv1.CustodyStep_CUSTODY_STEP_TAKE, Tenant: "acme-in", CaseId: id, PacketSha256: strings.Repeat("ab", 32), SignedAt: timestamppb.Now(),
		}
		if err := approval.SignCustody(sam, step); err != nil {
			t.Fatal(err)
		}
		return o.handle(t.Context(), d.deliver(roles.Console, id, step))
	}
	known := registry(approval.Approver{ID: "sam", Roles: []string{approval.RoleCustodian}, Tenants: []string{"acme-in"}, Keys: []approval.PublicKey{sam.PublicEntry(time.Now().Add(-time.Hour))}})
	for _, c := range []struct {
		file    []byte
		refused string
	}{{registry(), approval.ReasonUnknownApprover}, {known, ""}, {registry(), approval.ReasonUnknownApprover}} {
		file = c.file
		if err := takes(); err != nil {
			t.Fatal(err)
		}
		h := d.load(o, id).GetHandled()
		if got := h[len(h)-1].GetRefused(); got != c.refused {
			t.Errorf("refused with %q, want %q", got, c.refused)
		}
	}
	before := d.load(o, id).GetVersion()
	file = []byte("none")
	if err := takes(); err == nil || d.load(o, id).GetVersion() != before {
		t.Errorf("judged without a registry: %v", err)
	}
}

// somebodyElses answers that no order is the caller's.
type somebodyElses struct{}

func (somebodyElses) VerifyOwner(context.Context, string, string, string) (bool, error) {
	return false, nil
}

// Whose order it is, the payments side says: the message names it and proves
// nothing (TENANT-1).
func TestAnOrderOfSomebodyElseIsNotInvestigated(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.build(casestore.NewMemory())
	o.owners = somebodyElses{}
	if err := o.handle(t.Context(), d.post("req-8472")); err != nil {
		t.Fatal(err)
	}
	rec := d.load(o, "req-8472")
	if rec.GetState() != amendsv1.CaseState_CASE_STATE_AWAITING_CUSTOMER || rec.GetTriage().GetOrderId() != "" {
		t.Errorf("the case is %s about order %q", rec.GetState(), rec.GetTriage().GetOrderId())
	}
	if n := d.broker.Count(roles.StreamTasks, "task.payment-investigator.>"); n != 0 {
		t.Errorf("%d investigations of it were asked for", n)
	}
}
