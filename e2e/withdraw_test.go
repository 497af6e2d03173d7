package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// until follows a case to a view that satisfies ok, and approves nothing.
func (w *world) until(id string, after uint64, ok func(deskapi.View) bool) deskapi.View {
	w.t.Helper()
	var last deskapi.View
	found := false
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	var err error
	for err == nil && !found && w.ctx.Err() == nil {
		// A closed case is not followed on, and may yet be opened again.
		err = w.follow(id, after, func(v deskapi.View) error {
			if last, found = v, ok(v); found {
				return deskclient.ErrStop
			}
			return nil
		})
		select {
		case <-again.C:
		case <-w.ctx.Done():
		}
	}
	if err != nil || !found {
		w.t.Fatalf("case %s, last %s at v%d with %+v: %v", id, last.State, last.Version, last.Replies, err)
	}
	return last
}

func in(state string) func(deskapi.View) bool {
	return func(v deskapi.View) bool { return v.State == state }
}

// signed gives an approval of the action a case proposes, not handed in.
func (w *world) signed(id string, version uint64) *amendsv1.SignedDecision {
	w.t.Helper()
	shown, action, err := w.staff.Action(w.ctx, allinone.Tenant, id, version)
	if err != nil {
		w.t.Fatal(err)
	}
	key := w.Trial.Keys[allinone.Approver]
	d := &amendsv1.SignedDecision{
		ApprovalId: approval.IDOf(id, 1, int(shown.ApproversNeeded), key.ApproverID), Verdict: amendsv1.Verdict_VERDICT_APPROVE,
		Tenant: action.GetTenant(), CaseId: id, ActionSha256: shown.ActionSHA256,
		SignedAt: timestamppb.New(time.Now()), Expires: action.GetExpires(),
	}
	if err := approval.Sign(key, d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// judgement waits for what a case made of a decision.
func (w *world) judgement(ctx context.Context, id, messageID string, after uint64) deskapi.Judgement {
	w.t.Helper()
	for ctx.Err() == nil {
		rec, err := w.staff.Record(ctx, allinone.Tenant, id, after+1)
		if problem, ok := errors.AsType[*deskapi.Problem](err); ok && problem.Code == deskapi.CodeVersionNotReached {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if i := slices.IndexFunc(rec.Decisions, func(j deskapi.Judgement) bool { return j.MessageID == messageID }); i >= 0 {
			return rec.Decisions[i]
		}
		after = max(after, rec.Version)
	}
	w.t.Fatalf("case %s did not judge %s", id, messageID)
	return deskapi.Judgement{}
}

// M20: a customer withdraws while the approval is waiting. The case ends
// CANCELLED with a reply that says so, nothing is refunded, and the approval
// that was signed before and comes late changes nothing (APPROVAL-1, MONEY-4).
func TestWithdrawalWhileTheApprovalWaitsM20(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(1, true)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	waiting := w.until(caseID(0), 0, in("AWAITING_APPROVAL"))
	late := w.signed(caseID(0), waiting.Version)

	cancel := deskclient.Cancel{Key: "leave-it", CaseID: caseID(0)}
	first, err := w.gateway.Cancel(w.ctx, cancel)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.gateway.Cancel(w.ctx, cancel)
	if problem, ok := errors.AsType[*deskapi.Problem](err); ok && problem.Code != deskapi.CodeCaseClosed || !ok && (err != nil || again != first) {
		t.Errorf("LOSS-1: the retry got %+v, %v; the first %+v", again, err, first)
	}
	ended := w.until(caseID(0), waiting.Version, closed)
	if ended.State != "CANCELLED" || len(ended.Replies) != 1 || ended.Replies[0].Kind != "cancelled" {
		t.Fatalf("ended %s with %+v", ended.State, ended.Replies)
	}
	if said := strings.ToLower(ended.Replies[0].Text); !strings.Contains(said, "cancelled") || !strings.Contains(said, "nothing was refunded") {
		t.Errorf("the reply says %q", ended.Replies[0].Text)
	}

	before := w.record(0, ended.Version)
	relayed, err := w.staff.Decide(w.ctx, late)
	if err != nil {
		t.Fatal(err)
	}
	if j := w.judgement(w.ctx, caseID(0), relayed.MessageID, before.GetVersion()); j.State != "CANCELLED" || j.Refused != "not_awaiting_approval" {
		t.Errorf("the late approval was judged %+v", j)
	}
	after := w.record(0, before.GetVersion())
	if len(after.GetApprovals()) != 0 || after.GetEffect() != nil || len(after.GetReplies()) != len(before.GetReplies()) {
		t.Errorf("the late approval changed the case: %v", after)
	}
	if _, err := w.gateway.Cancel(w.ctx, deskclient.Cancel{Key: "once-more", CaseID: caseID(0)}); err == nil || !strings.Contains(err.Error(), string(deskapi.CodeCaseClosed)) {
		t.Errorf("a cancel of a closed case: %v", err)
	}
	if n := len(w.refunds()); n != 0 {
		t.Errorf("MONEY-4: %d refunds", n)
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_CANCELLED)
	w.noDeadLetters()
}

// A clarification is answered by a message, sent twice and recorded once: the
// case goes on with the order it names.
func TestClarificationIsAnsweredByAMessage(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.orders(1, true)
	if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: "k", CaseID: caseID(0), Message: "you double charged me"}); err != nil {
		t.Fatal(err)
	}
	asked := w.until(caseID(0), 0, func(v deskapi.View) bool { return v.State == "AWAITING_CUSTOMER" && len(v.Replies) > 0 })
	if asked.Replies[0].Kind != "clarify" {
		t.Errorf("replies %+v", asked.Replies)
	}
	m := deskclient.Message{Key: "answer", CaseID: caseID(0), Message: "it is order 8472"}
	first, err := w.gateway.Message(w.ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.gateway.Message(w.ctx, m)
	if err != nil || again != first {
		t.Errorf("LOSS-1: the retry got %+v, %v; the first %+v", again, err, first)
	}
	waiting := w.until(caseID(0), asked.Version, in("AWAITING_APPROVAL"))
	if waiting.OrderID != orderID(0) {
		t.Errorf("order %q", waiting.OrderID)
	}
	// Another body under the used key is refused; a cancel under it is another
	// kind of request.
	m.Message = "it is order 8473"
	_, err = w.gateway.Message(w.ctx, m)
	if problem, ok := errors.AsType[*deskapi.Problem](err); !ok || problem.Code != deskapi.CodeKeyReused {
		t.Errorf("another body got %v", err)
	}
	if _, err := w.gateway.Cancel(w.ctx, deskclient.Cancel{Key: "answer", CaseID: caseID(0)}); err != nil {
		t.Fatal(err)
	}
	ended := w.until(caseID(0), waiting.Version, closed)
	if said := w.record(0, ended.Version).GetMessages(); len(said) != 2 || said[1].GetText().GetText() != "it is order 8472" {
		t.Errorf("LOSS-1: the record holds %v, want the post and its answer", said)
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_CANCELLED)
	w.noDeadLetters()
}
