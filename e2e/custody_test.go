package e2e_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/custody"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// custodian signs a step about a case as it is shown, and gives what the case
// made of it.
func (w *world) custodian(id string, step amendsv1.CustodyStep, change func(*amendsv1.CustodyDecision)) deskapi.Judgement {
	w.t.Helper()
	shown, packet, err := w.staff.Custody(w.ctx, allinone.Tenant, id)
	if err != nil {
		w.t.Fatal(err)
	}
	if sum := custody.SHA256(packet); sum != shown.PacketSHA256 {
		w.t.Fatalf("the packet hashes to %s, the console says %s", sum, shown.PacketSHA256)
	}
	d := &amendsv1.CustodyDecision{
		Tenant: allinone.Tenant, CaseId: id, Step: step, PacketSha256: shown.PacketSHA256, SignedAt: timestamppb.New(time.Now()), Reason: "looked into",
	}
	if change != nil {
		change(d)
	}
	if err := approval.SignCustody(w.Trial.Keys[allinone.StaffMember], d); err != nil {
		w.t.Fatal(err)
	}
	relayed, err := w.staff.DecideCustody(w.ctx, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.judgement(w.ctx, id, relayed.MessageID, shown.Version)
}

// handedOver posts about an order with a partial refund (M24), which goes to
// people, and waits until the customer was told.
func (w *world) handedOver(order string) string {
	w.t.Helper()
	if err := w.Provider.Load(w.ctx, newBook(order, 500000, "INR", 2, 500000, 500000).refunded(1, 50000, "succeeded").Ledger); err != nil {
		w.t.Fatal(err)
	}
	id := "req-" + order
	if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: id, CaseID: id, Message: "Order " + order + " was charged twice, please refund one."}); err != nil {
		w.t.Fatal(err)
	}
	w.until(id, 0, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" && len(v.Replies) == 1 })
	return id
}

// queued gives the one case that waits for people, when the list has it.
func (w *world) queued() deskapi.Queued {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C { // the context of the next look bounds it
		page, err := w.staff.Queue(w.ctx, allinone.Tenant, "handoff", "", 0)
		if w.ctx.Err() != nil {
			w.t.Fatalf("nothing waits: %+v, %v", page, err)
		}
		if len(page.Cases) == 1 {
			return page.Cases[0]
		}
	}
	return deskapi.Queued{}
}

const (
	takes     = amendsv1.CustodyStep_CUSTODY_STEP_TAKE
	proposes  = amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE
	asks      = amendsv1.CustodyStep_CUSTODY_STEP_ASK
	declines  = amendsv1.CustodyStep_CUSTODY_STEP_DECLINE
	closesOff = amendsv1.CustodyStep_CUSTODY_STEP_CLOSE
)

// A custodian proposes what the rules left to people; another person approves
// exactly that, the executor makes it, and the case says so (MONEY-2, MONEY-4,
// LIVE-1).
func TestCustodianProposesAndAnotherApproves(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	id := w.handedOver("9024")
	if got := w.queued(); got.CaseID != id || got.Reason != "partial_refund_exists" || got.Custodian != "" {
		t.Errorf("LIVE-1: the queue holds %+v", got)
	}
	if j := w.custodian(id, proposes, proposing(id, "pay_9024_b", 450000)); j.Refused != "not_the_custodian" {
		t.Errorf("before it was taken: %+v", j)
	}
	if j := w.custodian(id, takes, nil); j.Refused != "" || j.State != "HUMAN_HANDOFF" {
		t.Fatalf("taken: %+v", j)
	}
	if j := w.custodian(id, proposes, proposing(id, "pay_9024_b", 500001)); j.Refused != "exceeds_captured" {
		t.Errorf("more than was captured: %+v", j)
	}
	j := w.custodian(id, proposes, proposing(id, "pay_9024_b", 450000))
	if j.Refused != "" || j.State != "AWAITING_APPROVAL" {
		t.Fatalf("proposed: %+v", j)
	}
	shown, action, err := w.staff.Action(w.ctx, allinone.Tenant, id, j.Version)
	if err != nil || action.GetProposedBy() != allinone.StaffMember || !strings.Contains(shown.ActionText, "proposed-by=sam") {
		t.Fatalf("the action is %v, %v", action, err)
	}
	if _, err := allinone.Approve(w.ctx, w.staff, w.Trial.Keys[allinone.Approver], id, j.Version); err != nil {
		t.Fatal(err)
	}
	v := w.until(id, j.Version, closed)
	if v.State != "VERIFIED_CLOSED" || !strings.Contains(v.Replies[len(v.Replies)-1].Text, "₹4,500.00") {
		t.Errorf("the case ended %+v", v)
	}
	l, err := w.Provider.Ledger(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var minor int64
	for _, r := range l.Refunds {
		if r.PaymentID == "pay_9024_b" {
			minor += r.AmountMinor
		}
	}
	if len(l.Refunds) != 2 || minor != 500000 {
		t.Errorf("MONEY-4: refunds %+v", l.Refunds)
	}
	w.noDeadLetters()
}

func proposing(id, payment string, minor int64) func(*amendsv1.CustodyDecision) {
	return func(d *amendsv1.CustodyDecision) {
		d.Refunds = []*amendsv1.ActionRefund{{
			PaymentId: payment, Amount: money.New(minor, "INR"), Kind: approval.KindDuplicate, IdempotencyKey: approval.Key(id, payment),
		}}
	}
}

// What a custodian writes leaves the desk only if the verifier finds nothing in
// it that the record does not say (TRUTH-1); a denial is told by the desk.
func TestCustodianAnswers(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	id := w.handedOver("9024")
	w.custodian(id, takes, nil)
	j := w.custodian(id, closesOff, func(d *amendsv1.CustodyDecision) { d.Text = "Your refund of ₹4,500.00 will arrive tomorrow." })
	back := w.until(id, j.Version, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" })
	if len(back.Replies) != 1 {
		t.Fatalf("TRUTH-1: a promise left the desk: %+v", back.Replies)
	}
	w.custodian(id, takes, nil)
	w.custodian(id, closesOff, func(d *amendsv1.CustodyDecision) {
		d.Text = "A person reviewed your request and decided against it. A refund of ₹500.00 (reference rf_old9024) was completed."
	})
	v := w.until(id, back.Version, closed)
	if len(v.Replies) != 2 || v.Replies[1].Kind != "written" {
		t.Errorf("the case ended %+v", v)
	}

	other := w.handedOver("9025")
	w.custodian(other, takes, nil)
	w.custodian(other, declines, nil)
	v = w.until(other, 0, closed)
	if len(v.Replies) != 2 || v.Replies[1].Kind != "explain" || !strings.Contains(v.Replies[1].Text, "decided against it") {
		t.Errorf("the declined case ended %+v", v)
	}
	if made := w.refunds(); len(made) != 2 { // the two that were there before
		t.Errorf("MONEY-4: refunds %+v", made)
	}
	w.noDeadLetters()
}

// A custodian's question goes out when it is verified, and the answer takes the
// case on. One that claims something comes back to people, and the packet says
// which sentence and why (TRUTH-1, LIVE-1).
func TestCustodianAsks(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	id := w.handedOver("9026")
	w.custodian(id, takes, nil)
	const claims = "Did you see that it is sorted?"
	j := w.custodian(id, asks, func(d *amendsv1.CustodyDecision) { d.Text = "Thank you for your message. " + claims })
	back := w.until(id, j.Version, in("HUMAN_HANDOFF"))
	if len(back.Replies) != 1 {
		t.Fatalf("TRUTH-1: a claim left the desk: %+v", back.Replies)
	}
	_, packet, err := w.staff.Custody(w.ctx, allinone.Tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(packet.GetOpenQuestions(), "\n"); packet.GetTrigger() != "reply_not_verified" ||
		!strings.Contains(text, "unsupported_statement: the word sorted in: "+claims) {
		t.Errorf("the packet says %s, %s", packet.GetTrigger(), text)
	}

	w.custodian(id, takes, nil)
	const question = "Thank you for your patience. Which of the two payments do you not recognise? Could you send us a screenshot of your bank statement?"
	j = w.custodian(id, asks, func(d *amendsv1.CustodyDecision) { d.Text = question })
	if j.Refused != "" || j.State != "AWAITING_CUSTOMER" {
		t.Fatalf("asked: %+v", j)
	}
	asked := w.until(id, j.Version, func(v deskapi.View) bool { return len(v.Replies) == 2 })
	if asked.State != "AWAITING_CUSTOMER" || asked.Replies[1].Kind != "written" || asked.Replies[1].Text != question {
		t.Fatalf("the case is %s with %+v", asked.State, asked.Replies)
	}
	answer := deskclient.Message{Key: "answer", CaseID: id, Message: "It is the second payment: order 9026 was charged twice."}
	if _, err := w.gateway.Message(w.ctx, answer); err != nil {
		t.Fatal(err)
	}
	w.until(id, asked.Version, func(v deskapi.View) bool { return v.State == "HUMAN_HANDOFF" && len(v.Replies) == 3 })
	if _, packet, err = w.staff.Custody(w.ctx, allinone.Tenant, id); err != nil {
		t.Fatal(err)
	}
	if said := packet.GetCustomerStatements(); packet.GetTrigger() != "partial_refund_exists" || len(said) != 2 || said[1].GetText() != answer.Message {
		t.Errorf("the answer did not reach people: %s, %v", packet.GetTrigger(), said)
	}
	w.noDeadLetters()
}
