package casework_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	take        = amendsv1.CustodyStep_CUSTODY_STEP_TAKE
	release     = amendsv1.CustodyStep_CUSTODY_STEP_RELEASE
	proposes    = amendsv1.CustodyStep_CUSTODY_STEP_PROPOSE
	declines    = amendsv1.CustodyStep_CUSTODY_STEP_DECLINE
	asks        = amendsv1.CustodyStep_CUSTODY_STEP_ASK
	investigate = amendsv1.CustodyStep_CUSTODY_STEP_INVESTIGATE
	closes      = amendsv1.CustodyStep_CUSTODY_STEP_CLOSE
)

// custody gives what a custodian signed about the record as it is.
func (w *world) custody(step amendsv1.CustodyStep, who string, valid bool, change ...func(*amendsv1.CustodyDecision)) casework.Input {
	w.tb.Helper()
	d := &amendsv1.CustodyDecision{
		Tenant: "acme-in", CaseId: "req-8472", Step: step, PacketSha256: casework.PacketSHA256(w.rec), CustodianId: who, KeyId: "k1",
		SignedAt: timestamppb.New(w.now), Signature: make([]byte, 64),
	}
	switch step {
	case proposes:
		d.Refunds = []*amendsv1.ActionRefund{{
			PaymentId: "pay_8472_b", Amount: money.New(150000, "INR"), Kind: approval.KindDuplicate, IdempotencyKey: approval.Key("req-8472", "pay_8472_b"),
		}}
	case asks:
		d.Text = "Which of the two payments do you not recognise?"
	case resolves:
		d.Reason = "booked by hand"
	case settles:
		for _, r := range w.rec.GetAction().GetRefunds() {
			d.Settlements = append(d.Settlements, &amendsv1.Settlement{IdempotencyKey: r.GetIdempotencyKey(), RefundId: "rf_5521"})
		}
	case closes:
		d.Text = "A person reviewed your request and decided against it."
	default: // the others carry nothing
	}
	for _, f := range change {
		f(d)
	}
	in := w.input("console", d, nil)
	in.Approver = &amendsv1.ApproverCheck{Valid: valid, ApproverId: who}
	if !valid {
		in.Approver.Reason = "signature_invalid"
	}
	return in
}

// disputed brings a case to people: payment evidence is there, and a dispute.
func disputed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, ledger8472(true))
	w.ledger.Disputes = []*amendsv1.Dispute{{DisputeId: "dp_1", PaymentId: "pay_8472_b", Status: amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN}}
	w.post(supported())
	w.settle()
	if got := casework.StateName(w.rec.GetState()); got != "HUMAN_HANDOFF" {
		t.Fatalf("case is %s", got)
	}
	return w
}

func (w *world) refusedWith() string {
	return w.rec.GetHandled()[len(w.rec.GetHandled())-1].GetRefused()
}

func TestCustodianDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step  amendsv1.CustodyStep
		state string
		reply amendsv1.ReplyKind
	}{
		{proposes, "AWAITING_APPROVAL", 0},
		{declines, "VERIFIED_CLOSED", amendsv1.ReplyKind_REPLY_KIND_EXPLAIN},
		{asks, "AWAITING_CUSTOMER", amendsv1.ReplyKind_REPLY_KIND_WRITTEN},
		{investigate, "HUMAN_HANDOFF", amendsv1.ReplyKind_REPLY_KIND_HANDOFF},
		{closes, "VERIFIED_CLOSED", amendsv1.ReplyKind_REPLY_KIND_WRITTEN},
	} {
		t.Run(approval.StepName(c.step), func(t *testing.T) {
			t.Parallel()
			w := disputed(t)
			w.apply(w.custody(take, "sam", true))
			if got := w.rec.GetCustody(); got.GetCustodian() != "sam" || got.GetQueue() != casework.QueueHandoff || got.GetReason() != "open_dispute" {
				t.Fatalf("custody is %v", got)
			}
			sent := len(w.rec.GetReplies())
			w.apply(w.custody(c.step, "sam", true))
			w.settle()
			if got := casework.StateName(w.rec.GetState()); got != c.state {
				t.Fatalf("case is %s, want %s", got, c.state)
			}
			if c.reply != 0 && (len(w.rec.GetReplies()) != sent+1 || w.rec.GetReplies()[sent].GetKind() != c.reply) {
				t.Errorf("replies are %v, want one more, %s", w.rec.GetReplies(), c.reply)
			}
			var path []string
			for _, e := range w.rec.GetCustody().GetEvents() {
				path = append(path, e.GetFrom()+">"+e.GetTo())
			}
			want := []string{"desk>handoff", "handoff>sam", "sam>desk"}
			if c.step == investigate {
				want = append(want, "desk>handoff")
			}
			if !slices.Equal(path, want) {
				t.Errorf("custody went %v, want %v", path, want)
			}
			w.replays()
		})
	}
}

// What a custodian proposes is approved by somebody else, in full view of who
// proposed it, and then moves like every other refund (MONEY-2).
func TestProposalOfACustodian(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.apply(w.custody(take, "maya", true))
	w.apply(w.custody(proposes, "maya", true))
	a := w.rec.GetAction()
	if a.GetProposedBy() != "maya" || a.GetRefunds()[0].GetAmount().GetMinor() != 150000 {
		t.Fatalf("action is %v", a)
	}
	text, err := approval.ActionText(a)
	if err != nil || !strings.Contains(text, "amends-action/2\n") || !strings.Contains(text, "\nproposed-by=maya\n") {
		t.Fatalf("the action reads %q, %v", text, err)
	}
	if d := w.rec.GetDecision(); !d.GetNeedsApproval() || d.GetApproversNeeded() != 1 {
		t.Fatalf("decision is %v", d)
	}
	w.apply(w.decision(approve, "ravi", "apr-8472-1", true))
	w.settle()
	if got := casework.StateName(w.rec.GetState()); got != "VERIFIED_CLOSED" {
		t.Fatalf("case is %s", got)
	}
	w.replays()
}

func TestCustodyRefusals(t *testing.T) {
	t.Parallel()
	taken := func(t *testing.T) *world {
		w := disputed(t)
		w.apply(w.custody(take, "sam", true))
		return w
	}
	refund := func(f func(*amendsv1.ActionRefund)) func(*amendsv1.CustodyDecision) {
		return func(d *amendsv1.CustodyDecision) { f(d.GetRefunds()[0]) }
	}
	for _, c := range []struct {
		reason string
		in     func(*testing.T) (*world, casework.Input)
	}{
		{"not_in_custody", func(t *testing.T) (*world, casework.Input) {
			w := newWorld(t, ledger8472(true))
			w.post(supported())
			in := w.custody(take, "sam", true)
			return w, in
		}},
		{"signature_invalid", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(declines, "sam", false)
			return w, in
		}},
		{"in_custody_of_another", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(take, "lee", true)
			return w, in
		}},
		{"not_the_custodian", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(declines, "lee", true)
			return w, in
		}},
		{"not_the_custodian", func(t *testing.T) (*world, casework.Input) {
			w := disputed(t)
			in := w.custody(declines, "sam", true)
			return w, in
		}},
		{"custody_expired", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			w.now = w.now.Add(8 * time.Hour)
			in := w.custody(declines, "sam", true)
			return w, in
		}},
		{"record_changed", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(declines, "sam", true)
			w.says("8472") // the customer writes once more
			return w, in
		}},
		{"payment_unknown", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(proposes, "sam", true, refund(func(r *amendsv1.ActionRefund) { r.PaymentId = "pay_9001_a" }))
			return w, in
		}},
		{"currency_differs", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(proposes, "sam", true, refund(func(r *amendsv1.ActionRefund) { r.Amount = money.New(100, "JPY") }))
			return w, in
		}},
		{"exceeds_captured", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(proposes, "sam", true, refund(func(r *amendsv1.ActionRefund) { r.Amount = money.New(200001, "INR") }))
			return w, in
		}},
		{"action_not_canonical", func(t *testing.T) (*world, casework.Input) {
			w := taken(t)
			in := w.custody(proposes, "sam", true, refund(func(r *amendsv1.ActionRefund) { r.IdempotencyKey = "refund:other" }))
			return w, in
		}},
		{"evidence_missing", func(t *testing.T) (*world, casework.Input) {
			w := newWorld(t, ledger8472(true))
			tr := supported()
			tr.Outcome, tr.Reason = amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, "unrecognised_charge"
			w.post(tr)
			w.apply(w.custody(take, "sam", true))
			in := w.custody(proposes, "sam", true)
			return w, in
		}},
		{"order_unknown", func(t *testing.T) (*world, casework.Input) {
			w := newWorld(t, ledger8472(true))
			tr := supported()
			tr.Outcome, tr.OrderId = amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, ""
			w.post(tr)
			w.apply(w.custody(take, "sam", true))
			in := w.custody(investigate, "sam", true)
			return w, in
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			w, in := c.in(t)
			state := w.rec.GetState()
			w.apply(in)
			if got := w.refusedWith(); got != c.reason || w.rec.GetState() != state {
				t.Errorf("refused with %q in %s, want %q", got, casework.StateName(w.rec.GetState()), c.reason)
			}
		})
	}
}

// Custody that ran out may be taken by somebody else; what its last holder
// signed then decides nothing (B32).
func TestCustodyChangesHands(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.apply(w.custody(take, "sam", true))
	w.now = w.now.Add(8 * time.Hour)
	w.apply(w.custody(take, "lee", true))
	if got := w.rec.GetCustody().GetCustodian(); got != "lee" {
		t.Fatalf("the custodian is %s", got)
	}
	w.apply(w.custody(closes, "sam", true))
	if got := w.refusedWith(); got != "not_the_custodian" {
		t.Errorf("refused with %q", got)
	}
	w.apply(w.custody(release, "lee", true))
	if c := w.rec.GetCustody(); c.GetCustodian() != "" || c.GetQueue() != casework.QueueHandoff || c.GetReason() != "open_dispute" {
		t.Errorf("custody after the release is %v", c)
	}
	w.replays()
}

// Words of a custodian that do not pass the verifier leave the case with
// people; the desk does not rewrite them (TRUTH-1).
func TestWrittenReplyIsVerified(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.apply(w.custody(take, "sam", true))
	w.verdict = func(*amendsv1.Draft) []*amendsv1.ClaimCheck {
		return []*amendsv1.ClaimCheck{{What: "promise", Found: "will be refunded", Reason: "promise_unsupported"}}
	}
	w.apply(w.custody(closes, "sam", true))
	w.settle()
	if got := casework.StateName(w.rec.GetState()); got != "HUMAN_HANDOFF" || w.rec.GetCustody().GetReason() != "reply_not_verified" || w.rec.GetCustody().GetCustodian() != "sam" {
		t.Fatalf("case is %s, %v", got, w.rec.GetCustody())
	}
	if q := casework.Packet(w.rec).GetOpenQuestions(); len(q) != 1 || !strings.Contains(q[0], "promise_unsupported: will be refunded") {
		t.Errorf("the packet asks %q", q)
	}
	w.replays()
}
