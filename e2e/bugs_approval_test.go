package e2e_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// decides signs an approval of what a case proposes with somebody's key, at
// a moment of the desk's time, not handed in.
func (w *world) decides(who, id string, version uint64, at time.Time) *amendsv1.SignedDecision {
	w.t.Helper()
	shown, action, err := w.staff.Action(w.ctx, allinone.Tenant, id, version)
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := allinone.Decision(w.Trial.Keys[who], shown, action, amendsv1.Verdict_VERDICT_APPROVE, at)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// judged hands a decision in and gives what the case made of it.
func (w *world) judged(d *amendsv1.SignedDecision) deskapi.Judgement {
	w.t.Helper()
	before, err := w.staff.Record(w.ctx, allinone.Tenant, d.GetCaseId(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	relayed, err := w.staff.Decide(w.ctx, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.judgement(w.ctx, d.GetCaseId(), relayed.MessageID, before.Version-1)
}

// Bug B21: approved by a double click, by two people, and again after a restart
// of the desk: one refund, by one call.
func TestApprovedManyTimesIsRefundedOnceB21(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, allinone.Options{Dir: dir, NoSync: true})
	w.orders(1, true)
	id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
	first, second := w.decides(allinone.Approver, id, waiting.Version, time.Now()), w.decides(allinone.SecondApprover, id, waiting.Version, time.Now())
	clicks := []*amendsv1.SignedDecision{first, first, second, first, second, first}
	w.each(len(clicks), len(clicks), func(i int) error {
		_, err := w.staff.Decide(w.ctx, clicks[i])
		return err
	})
	w.until(id, waiting.Version, closed)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = start(t, allinone.Options{Dir: dir, NoSync: true})
	for _, d := range []*amendsv1.SignedDecision{first, second} {
		if _, err := w.staff.Decide(w.ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	w.quiet()
	if made := w.refunds(); len(made) != 1 || made["pay_8472_b"].AmountMinor != 200000 {
		t.Errorf("MONEY-1: refunds %+v", made)
	}
	if in := w.intents("8472"); len(in) != 1 || in[0].GetCalls() != 1 || len(in[0].GetApprovalIds()) != 1 {
		t.Errorf("MONEY-2: intents %v", in)
	}
	if rows := w.rows(id); count(rows, "approved") != 1 || count(rows, "effect.acknowledged") != 1 {
		t.Errorf("rows %q", rows)
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// Bug B29, M23: three payments, two refunds in one action that two people have
// to approve. The desk is started again between the first signature and the
// second: neither refund is made before it, and each once after it.
func TestTwoRefundsUnderTwoSignaturesB29(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, allinone.Options{Dir: dir, NoSync: true})
	const each = 30_000_00
	if err := w.Provider.Load(w.ctx, newBook("9023", each, "INR", 2, each, each, each).Ledger); err != nil {
		t.Fatal(err)
	}
	id, waiting := w.asks("9023", "order 9023 got charged THREE times!")
	if j := w.judged(w.decides(allinone.Approver, id, waiting.Version, time.Now())); j.Refused != "" || j.State != "AWAITING_APPROVAL" {
		t.Fatalf("the first signature was judged %+v", j)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = start(t, allinone.Options{Dir: dir, NoSync: true})
	if n := len(w.refunds()); n != 0 {
		t.Fatalf("MONEY-2: %d refunds after one of two signatures", n)
	}
	second := w.decides(allinone.SecondApprover, id, waiting.Version, time.Now())
	for range 2 {
		if _, err := w.staff.Decide(w.ctx, second); err != nil {
			t.Fatal(err)
		}
	}
	w.until(id, waiting.Version, closed)
	w.quiet()
	if made := w.refunds(); len(made) != 2 || made["pay_9023_b"].AmountMinor != each || made["pay_9023_c"].AmountMinor != each {
		t.Errorf("MONEY-1: refunds %+v", made)
	}
	for _, in := range w.intents("9023") {
		if in.GetCalls() != 1 || len(in.GetApprovalIds()) != 2 {
			t.Errorf("MONEY-2: intent %v", in)
		}
	}
	w.noDeadLetters()
}

// Bug B29: of three payments, b is approved and refunded, then c. What is
// approved later does not run again what was approved earlier, nor does the
// earlier approval, handed in once more.
func TestOneApprovalAfterTheOtherB29(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.faults(sandbox.Fault{Kind: sandbox.WebhookLost}) // news of b's refund would void what is proposed for c
	// The partial refund leaves the order to people, who take one at a time.
	if err := w.Provider.Load(w.ctx, newBook("9023", 200000, "INR", 2, 200000, 200000, 200000).refunded(0, 50000, "succeeded").Ledger); err != nil {
		t.Fatal(err)
	}
	if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: "k", CaseID: "req-9023", Message: "order 9023 got charged THREE times!"}); err != nil {
		t.Fatal(err)
	}
	var earlier *amendsv1.SignedDecision
	for _, c := range []struct {
		id, payment string
		minor       int64
	}{{"req-9023", "pay_9023_b", 200000}, {"req-9023-2", "pay_9023_c", 150000}} {
		w.until(c.id, 0, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" && len(v.Replies) == 1 })
		w.custodian(c.id, takes, nil)
		j := w.custodian(c.id, proposes, proposing(c.id, c.payment, c.minor))
		if j.Refused != "" || j.State != "AWAITING_APPROVAL" {
			t.Fatalf("%s proposed: %+v", c.payment, j)
		}
		if earlier != nil {
			if _, err := w.staff.Decide(w.ctx, earlier); err != nil {
				t.Fatal(err)
			}
			stolen := proto.CloneOf(earlier) // and put under the name of the new case
			stolen.CaseId = c.id
			if late := w.judged(stolen); late.Refused == "" {
				t.Errorf("the approval of b, handed in for c, was judged %+v", late)
			}
		}
		d := w.decides(allinone.Approver, c.id, j.Version, time.Now())
		if got := w.judged(d); got.Refused != "" {
			t.Fatalf("the approval of %s was judged %+v", c.payment, got)
		}
		w.until(c.id, j.Version, closed)
		if earlier == nil {
			if _, err := w.gateway.Message(w.ctx, deskclient.Message{Key: "again", CaseID: c.id, Message: "order 9023 was charged twice, please refund the other one too"}); err != nil {
				t.Fatal(err)
			}
			if got := w.continued(c.id); got != "req-9023-2" {
				t.Fatalf("continued by %q", got)
			}
		}
		earlier = d
	}
	if _, err := w.staff.Decide(w.ctx, earlier); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	calls := map[string]uint32{}
	for _, in := range w.intents("9023") {
		calls[in.GetIdempotencyKey()] += in.GetCalls()
	}
	want := map[string]uint32{approval.Key("req-9023", "pay_9023_b"): 1, approval.Key("req-9023-2", "pay_9023_c"): 1}
	for key, n := range calls {
		if want[key] != n {
			t.Errorf("%d calls under %s", n, key)
		}
	}
	if made := w.refunds(); len(made) != 3 || len(calls) != 2 || made["pay_9023_b"].AmountMinor != 200000 || made["pay_9023_c"].AmountMinor != 150000 {
		t.Errorf("MONEY-1: calls %v, refunds %+v", calls, made)
	}
	w.noDeadLetters()
}

// Bug B30: an approval counts 29 minutes after the proposal, though the desk
// was started again meanwhile; at 30 minutes it does not, and a fresh proposal
// needs a fresh signature. Who approved is said by the signature, whoever hands
// it in and whatever name is written on it.
func TestApprovalExpiresByTheClockB30(t *testing.T) {
	t.Parallel()
	clock := deskclock.New(time.Now(), time.Now)
	clock.Run()
	dir := t.TempDir()
	w := start(t, allinone.Options{Dir: dir, NoSync: true, Clock: clock})
	w.orders(2, true)
	id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
	late, lateWaiting := w.asks("8473", "Order 8473 was charged twice, please refund one.")
	_, action, err := w.staff.Action(w.ctx, allinone.Tenant, id, waiting.Version)
	if err != nil {
		t.Fatal(err)
	}
	if d := action.GetExpires().AsTime().Sub(action.GetCreated().AsTime()); d != 30*time.Minute {
		t.Fatalf("the action lives for %s", d)
	}
	w.leaps(action.GetCreated().AsTime().Add(29 * time.Minute))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = start(t, allinone.Options{Dir: dir, NoSync: true, Clock: clock})

	d := w.decides(allinone.Approver, id, waiting.Version, clock.Now())
	forged := proto.CloneOf(d)
	forged.ApproverId, forged.KeyId = allinone.SecondApprover, allinone.SecondApprover+"-1"
	if j := w.judged(forged); j.Refused != approval.ReasonSignature {
		t.Errorf("a decision with another's name on it was judged %+v", j)
	}
	if j := w.judged(d); j.Refused != "" || j.State != "REFUND_REQUESTED" {
		t.Errorf("after 29 minutes and a restart the approval was judged %+v", j)
	}
	w.until(id, waiting.Version, closed)
	if a := w.record(0, 0).GetApprovals(); len(a) != 1 || a[0].GetApproverId() != allinone.Approver {
		t.Errorf("approvals %v, handed in by %s", a, allinone.StaffMember)
	}

	old := w.decides(allinone.Approver, late, lateWaiting.Version, clock.Now())
	w.leaps(old.GetExpires().AsTime())
	if j := w.judged(old); j.Refused == "" {
		t.Errorf("at 30 minutes the approval was judged %+v", j)
	}
	anew := w.until(late, lateWaiting.Version, in("AWAITING_APPROVAL"))
	again := w.decides(allinone.Approver, late, anew.Version, clock.Now())
	again.ActionSha256, again.Expires = old.GetActionSha256(), old.GetExpires()
	if err := approval.Sign(w.Trial.Keys[allinone.Approver], again); err != nil {
		t.Fatal(err)
	}
	if j := w.judged(again); j.Refused == "" {
		t.Errorf("a signature of the old proposal on the fresh one was judged %+v", j)
	}
	if made := w.refunds(); len(made) != 1 {
		t.Errorf("MONEY-2: refunds %+v", made)
	}
	if j := w.judged(w.decides(allinone.Approver, late, anew.Version, clock.Now())); j.Refused != "" {
		t.Errorf("the fresh signature was judged %+v", j)
	}
	w.until(late, anew.Version, closed)
	if made := w.refunds(); len(made) != 2 {
		t.Errorf("refunds %+v", made)
	}
	w.noDeadLetters()
}

// leaps moves the desk's time to a moment, when nothing is under way.
func (w *world) leaps(to time.Time) {
	w.t.Helper()
	w.quiet()
	a, err := w.Auditor()
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.Close()
	if err := a.AdvanceTo(w.ctx, to); err != nil {
		w.t.Fatal(err)
	}
}

// Bug B25 on the desk: what an approver was shown and what is in the record
// must be one: a signature of ₹2,000 carries no ₹20,000, and the executor is
// not asked. (Past the orchestrator, by its own credential: the executor's
// tests.)
func TestApprovalOfAnotherSumIsRefusedB25(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(1, true)
	id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
	shown, action, err := w.staff.Action(w.ctx, allinone.Tenant, id, waiting.Version)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(shown.ActionText, "pay_8472_b INR 200000") {
		t.Fatalf("the approver is shown %s", shown.ActionText)
	}
	other := proto.CloneOf(action)
	other.Refunds[0].Amount.Minor = 20_000_00
	d, err := allinone.Decision(w.Trial.Keys[allinone.Approver], shown, other, amendsv1.Verdict_VERDICT_APPROVE, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if j := w.judged(d); j.Refused == "" || j.State != "AWAITING_APPROVAL" {
		t.Errorf("judged %+v", j)
	}
	if n := len(w.refunds()); n != 0 || len(w.intents("8472")) != 0 {
		t.Errorf("MONEY-2: %d refunds", n)
	}
	w.noDeadLetters()
}
