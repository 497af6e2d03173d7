package e2e_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func (w *world) record(i int, minVersion uint64) *amendsv1.CaseRecord {
	w.t.Helper()
	rec, err := w.shown(i, minVersion)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// shown gives a case's record as the console shows it, of minVersion or later.
func (w *world) shown(i int, minVersion uint64) (*amendsv1.CaseRecord, error) {
	shown, err := w.staff.Record(w.ctx, allinone.Tenant, caseID(i), minVersion)
	if err != nil {
		return nil, err
	}
	rec := &amendsv1.CaseRecord{}
	return rec, (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(shown.Record, rec)
}

// Path A: VERIFIED_CLOSED at v9 with exactly one refund of 200000 minor units
// on the later capture, approved by a person, and a reply that names it as
// pending (MONEY-1, MONEY-2, TRUTH-1, TRUTH-2, STATE-1).
func TestPathA(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.orders(1, true)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	v, err := w.finish(0, closed)
	if err != nil {
		t.Fatal(err)
	}
	if v.State != "VERIFIED_CLOSED" || v.Version != 9 {
		t.Errorf("ended %s at v%d, want VERIFIED_CLOSED at v9", v.State, v.Version)
	}
	refunds := w.refunds()
	r, ok := refunds["pay_8472_b"]
	if len(refunds) != 1 || !ok || r.AmountMinor != 200000 || r.Currency != "INR" || r.Reference != "refund:req-8472:pay_8472_b" {
		t.Fatalf("refunds %+v", refunds)
	}
	if len(v.Replies) != 1 || !strings.Contains(v.Replies[0].Text, r.RefundID) || !strings.Contains(v.Replies[0].Text, "pending") {
		t.Errorf("replies %+v", v.Replies)
	}
	rec := w.record(0, 9)
	want := []string{"RECEIVED", "INVESTIGATING", "INVESTIGATING", "INVESTIGATING", "AWAITING_APPROVAL", "REFUND_REQUESTED", "REFUNDED", "REFUNDED", "VERIFIED_CLOSED"}
	for i, e := range rec.GetTimeline() {
		if got := strings.TrimPrefix(e.GetState().String(), "CASE_STATE_"); got != want[i] {
			t.Errorf("v%d is %s, want %s", i+1, got, want[i])
		}
	}
	if a := rec.GetApprovals(); len(a) != 1 || a[0].GetApprovalId() != "apr-8472-1" || a[0].GetApproverId() != allinone.Approver {
		t.Errorf("approvals %v", a)
	}
	if rec.GetPolicy().GetPassage().GetDocumentId() != "POL-REF-004" || rec.GetPolicy().GetPassage().GetVersion() != 4 {
		t.Errorf("policy %v", rec.GetPolicy().GetPassage())
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// Path B: a hold is no second payment: nothing is refunded, the reply does not
// say that anything was, and the desk looks again after four hours (LIVE-1).
func TestPathB(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.orders(1, false)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	v, err := w.finish(0, func(v deskapi.View) bool { return len(v.Replies) > 0 })
	if err != nil {
		t.Fatal(err)
	}
	if v.State != "HOLD_FOR_EVIDENCE" || v.Replies[0].Kind != "holding" {
		t.Errorf("ended %s with %+v", v.State, v.Replies)
	}
	for _, word := range []string{"refunded", "approved", "issued", "on its way"} {
		if strings.Contains(strings.ToLower(v.Replies[0].Text), word) {
			t.Errorf("TRUTH-1: the holding reply says %q: %s", word, v.Replies[0].Text)
		}
	}
	rec := w.record(0, v.Version)
	d := rec.GetDecision()
	if rec.GetTimeline()[4].GetState() != amendsv1.CaseState_CASE_STATE_HOLD_FOR_EVIDENCE || d.GetEvidenceComplete() || d.GetRefund() || d.GetReason() != "no_duplicate_settled_capture" {
		t.Errorf("decision at v5: %v", d)
	}
	if len(d.GetCallIds()) != 1 || d.GetCallIds()[0] != "call-8472-p3" {
		t.Errorf("decision cites %v", d.GetCallIds())
	}
	if got := d.GetRecheckAt().AsTime().Sub(rec.GetTimeline()[4].GetAt().AsTime()); got != 4*time.Hour {
		t.Errorf("recheck after %s", got)
	}
	if n := len(w.refunds()); n != 0 {
		t.Errorf("%d refunds", n)
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_HOLD_FOR_EVIDENCE)
	w.noDeadLetters()
}
