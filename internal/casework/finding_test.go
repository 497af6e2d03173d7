package casework_test

import (
	"errors"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	settles  = amendsv1.CustodyStep_CUSTODY_STEP_SETTLE
	resolves = amendsv1.CustodyStep_CUSTODY_STEP_RESOLVE
)

func findingWith(code string) *amendsv1.EffectFinding {
	return &amendsv1.EffectFinding{
		FindingId: ident.Finding("acme-in", code, "8472", "rf_9"), Code: code, Tenant: "acme-in", OrderId: "8472", RefundId: "rf_9",
		Records: []*amendsv1.FindingRecord{
			{Source: "provider", Kind: "refund", Id: "rf_9", Amount: money.New(200000, "INR"), Status: "succeeded"}, {Source: "ledger", Kind: "intent", Status: "absent"},
		},
		SeenAt: timestamppb.New(start),
	}
}

// finding is what the executor's sweep found about a case.
func (w *world) finding(code, caseID string) casework.Input {
	w.tb.Helper()
	return w.input("refund-executor", findingWith(code), func(e *amendsv1.Envelope) { e.CaseId, e.RequestId, e.CustomerId = caseID, caseID, "" })
}

// MONEY-3: a disagreement about no case is a case for people, and for nobody
// else: no customer, no channel, no reply, no task.
func TestAFindingAboutNoCaseOpensOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	id, ok := casework.OpensFinding(findingWith("refund_without_intent"))
	if !ok || !ident.IsFindingCase(id) {
		t.Fatalf("the case is %q", id)
	}
	if _, err := casework.Decide(nil, w.finding("refund_without_intent", "req-lost"), w.lim); !errors.Is(err, casework.ErrNoCase) {
		t.Fatalf("a finding made up a case: %v", err)
	}
	elsewhere := w.finding("refund_without_intent", "req-lost")
	elsewhere.OpensCaseId = id // as the shell has it when the case is lost
	if c, err := casework.Decide(nil, elsewhere, w.lim); err != nil || c.GetRecord().GetCaseId() != id {
		t.Fatalf("a finding about a lost case: %v", err)
	}
	w.apply(w.finding("refund_without_intent", id))
	w.is("HUMAN_HANDOFF")
	rec := w.rec
	if c := rec.GetCustody(); c.GetQueue() != casework.QueueReconciliation || c.GetReason() != "refund_without_intent" {
		t.Errorf("custody %v", c)
	}
	if rec.GetCustomerId() != ident.Desk || rec.GetChannel() != ident.Desk || rec.GetRequestId() != id || rec.GetPins() == nil || rec.GetTriage() != nil || len(w.tasks()) != 0 {
		t.Errorf("the record is %v", rec)
	}
	if v := casework.View(rec); v.GetCustomerId() != ident.Desk || v.GetQueue() != casework.QueueReconciliation || casework.OrderOf(rec) != "8472" {
		t.Errorf("the view is %v", v)
	}
	if q := casework.Packet(rec).GetOpenQuestions(); len(q) != 1 || q[0] != "refund_without_intent, order 8472, refund rf_9: provider refund rf_9 ₹2,000.00 succeeded; ledger intent absent ("+rec.GetFindings()[0].GetFindingId()+")" {
		t.Errorf("the packet asks %q", q)
	}
	w.replays()

	// Nobody can be written to, and nothing refunded; it ends with a note.
	at := func(step amendsv1.CustodyStep) casework.Input {
		return w.custody(step, "sam", true, func(d *amendsv1.CustodyDecision) { d.CaseId = id })
	}
	w.apply(at(take))
	for _, step := range []amendsv1.CustodyStep{proposes, declines, asks, closes, investigate} {
		w.apply(at(step))
		if got := w.refusedWith(); got != "no_customer" {
			t.Errorf("%s: refused with %q", step, got)
		}
	}
	w.apply(at(release))
	if c := w.rec.GetCustody(); c.GetQueue() != casework.QueueReconciliation || c.GetCustodian() != "" {
		t.Errorf("released to %v", c)
	}
	w.apply(at(take))
	w.apply(at(resolves))
	w.is("VERIFIED_CLOSED")
	if len(w.rec.GetReplies()) != 0 || !casework.Closed(w.rec) || len(w.tasks()) != 0 {
		t.Errorf("%d replies", len(w.rec.GetReplies()))
	}
	if note := w.rec.GetTimeline()[len(w.rec.GetTimeline())-1].GetNote(); note != "sam: booked by hand" {
		t.Errorf("the note is %q", note)
	}
	w.replays()
}

// A finding is a case for people once: where the matter was ended it is with
// them again, what rests on facts is looked up again, and else it is recorded.
func TestAFindingAboutACase(t *testing.T) {
	t.Parallel()
	none := func(*world) {}
	settle := func(w *world) { w.settle() }
	for name, c := range map[string]struct {
		secondSettled bool
		walk          func(*world)
		state, row    string
	}{
		"INVESTIGATING":     {true, none, "INVESTIGATING", "finding.recorded"},
		"AWAITING_APPROVAL": {true, settle, "INVESTIGATING", "finding.void"},
		"HOLD_FOR_EVIDENCE": {false, settle, "INVESTIGATING", "finding.recheck"},
		"HOLD, none left":   {false, func(w *world) { w.lim.Rechecks = 0; w.settle() }, "HOLD_FOR_EVIDENCE", "finding.recorded"},
		"REFUND_REQUESTED": {true, func(w *world) {
			w.settle()
			w.apply(w.decision(approve, "maya", "apr-8472-1", true))
		}, "REFUND_REQUESTED", "finding.recorded"},
		"REFUNDED": {true, func(w *world) {
			w.settle()
			w.apply(w.decision(approve, "maya", "apr-8472-1", true))
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
		}, "HUMAN_HANDOFF", "finding.reopens"},
		"VERIFIED_CLOSED": {true, func(w *world) {
			w.settle()
			w.apply(w.decision(approve, "maya", "apr-8472-1", true))
			w.settle()
		}, "HUMAN_HANDOFF", "finding.reopens"},
		"CANCELLED": {true, func(w *world) { w.cancelAs("cust_5519") }, "HUMAN_HANDOFF", "finding.reopens"},
		"DECLINED": {true, func(w *world) {
			w.settle()
			w.apply(w.decision(deny, "maya", "apr-8472-1", true))
		}, "HUMAN_HANDOFF", "finding.reopens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, ledger8472(c.secondSettled))
			w.post(supported())
			c.walk(w)
			replies := len(w.rec.GetReplies())
			w.apply(w.finding("refund_missing", "req-8472"))
			w.is(c.state)
			if w.lastRow() != c.row || len(w.rec.GetFindings()) != 1 {
				t.Errorf("row %s with %d findings", w.lastRow(), len(w.rec.GetFindings()))
			}
			if c.row == "finding.reopens" {
				if cu := w.rec.GetCustody(); cu.GetQueue() != casework.QueueReconciliation || cu.GetReason() != "refund_missing" || len(w.tasks()) != 0 || len(w.rec.GetReplies()) != replies {
					t.Errorf("custody %v with %d tasks", cu, len(w.tasks()))
				}
			}
			before := proto.CloneOf(w.rec)
			for _, again := range []casework.Input{
				w.finding("refund_missing", "req-8472"),
				w.input("orchestrator", &amendsv1.CaseFinding{Finding: findingWith("refund_missing")}, nil),
			} {
				if _, err := casework.Decide(w.rec, again, w.lim); !errors.Is(err, casework.ErrNothingNew) || !proto.Equal(before, w.rec) {
					t.Errorf("the same finding again: %v", err)
				}
			}
		})
	}
}

// TENANT-1, STATE-2: another tenant's finding, and one from somebody else, are
// none; and a record holds so many.
func TestFindingsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	f := findingWith("refund_missing")
	f.Tenant = "other"
	w.apply(w.input("refund-executor", f, nil))
	if got := w.refusedWith(); got != "tenant_mismatch" {
		t.Errorf("another tenant's: %q", got)
	}
	in := w.finding("refund_missing", "req-8472")
	in.Envelope.Sender = "composer"
	w.apply(in)
	if got := w.refusedWith(); got != "author_mismatch" {
		t.Errorf("the composer's: %q", got)
	}
	for i := range 40 {
		w.apply(w.finding("code_"+strconv.Itoa(i), "req-8472"))
	}
	if got := w.refusedWith(); got != "findings_full" || len(w.rec.GetFindings()) != 32 {
		t.Errorf("%q with %d", got, len(w.rec.GetFindings()))
	}
}

// A customer who waits for something is answered; nothing of theirs ends quietly.
func TestResolvingIsForWhatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	for name, walk := range map[string]func(*testing.T) *world{
		"an ordinary case": disputed,
		"a refund that failed": func(t *testing.T) *world {
			w := refundedWorld(t)
			w.told("refund.failed", "rf_5521")
			w.answer(confirms, w.readAgain(w.asked().GetAction(), statusFailed))
			return w
		},
		"refunded and not told": func(t *testing.T) *world {
			w := requested(t)
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
			w.apply(w.finding("amount_differs", "req-8472"))
			return w
		},
		"the customer wrote meanwhile": func(t *testing.T) *world {
			w := refundedWorld(t)
			w.apply(w.finding("amount_differs", "req-8472"))
			w.says("8472")
			return w
		},
	} {
		w := walk(t)
		w.is("HUMAN_HANDOFF")
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(resolves, "sam", true))
		if got := w.refusedWith(); got != "customer_waits" {
			t.Errorf("%s: refused with %q", name, got)
		}
	}
	w := refundedWorld(t)
	w.apply(w.finding("amount_differs", "req-8472"))
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(resolves, "sam", true))
	w.is("VERIFIED_CLOSED")
	w.replays()
}
