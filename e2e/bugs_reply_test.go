package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/deskclock"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/taskwork"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// promised are words a customer must not read while no refund id exists.
var promised = []string{"approved", "issued", "refunded", "on its way", "will receive", "will be credited", "completed"}

// Bug B22: approved, and the executor is gone: no refund exists and nobody
// knows when it will. The customer is promised nothing, whatever they ask, and
// when the desk has asked often enough the case is where people see it.
func TestApprovedWithoutARefundPromisesNothingB22(t *testing.T) {
	t.Parallel()
	clock := deskclock.New(time.Now(), time.Now)
	clock.Run()
	w := start(t, allinone.Options{NoSync: true, Clock: clock, Apart: []roles.Service{roles.RefundExecutor}})
	w.orders(1, true)
	id, waiting := w.asks("8472", "Order 8472 was charged twice, please refund one.")
	if j := w.judged(w.decides(allinone.Approver, id, waiting.Version, clock.Now())); j.State != "REFUND_REQUESTED" {
		t.Fatalf("judged %+v", j)
	}
	if _, err := w.gateway.Message(w.ctx, deskclient.Message{Key: "later", CaseID: id, Message: "Has my refund been sent? When do I get it?"}); err != nil {
		t.Fatal(err)
	}
	rec := w.stalls(w.record(0, waiting.Version+2), clock) // the approval and the question
	v, err := w.gateway.View(w.ctx, id, "")
	if err != nil || casework.StateName(rec.GetState()) != "RECONCILING" || len(v.Replies) != 0 || !rec.GetOutcomeUnknown() {
		t.Fatalf("LIVE-1: the case is %s with %+v, %v", casework.StateName(rec.GetState()), v.Replies, err)
	}
	for _, row := range w.rows(id) {
		if strings.HasPrefix(row, "effect.refused") {
			t.Errorf("an unknown outcome was taken for a refusal: %s", row)
		}
	}
	queue, err := w.staff.Queue(w.ctx, allinone.Tenant, "reconciliation", "", 0)
	for err == nil && len(queue.Cases) == 0 { // the list follows the cases
		queue, err = w.staff.Queue(w.ctx, allinone.Tenant, "reconciliation", "", 0)
	}
	if err != nil || queue.Cases[0].CaseID != id {
		t.Fatalf("LIVE-1: the queue holds %+v, %v", queue, err)
	}
	if n := len(w.refunds()); n != 0 {
		t.Errorf("%d refunds", n)
	}
}

// stalls moves the desk's time on until a case whose executor does not answer
// is left to people, told to nobody.
func (w *world) stalls(rec *amendsv1.CaseRecord, clock *deskclock.Clock) *amendsv1.CaseRecord {
	w.t.Helper()
	auditor, err := w.Auditor()
	if err != nil {
		w.t.Fatal(err)
	}
	defer auditor.Close()
	for range 100 { // the deadlines of an effect double up to ten minutes
		if err := auditor.AdvanceTo(w.ctx, clock.Now().Add(11*time.Minute)); err != nil {
			w.t.Fatal(err)
		}
		rec = w.reaches(rec.GetCaseId(), rec.GetVersion()+1)
		if len(rec.GetReplies()) != 0 || rec.GetReply().GetKind() != 0 {
			w.t.Fatalf("TRUTH-1: in %s the customer is told %v", casework.StateName(rec.GetState()), rec.GetReply())
		}
		if rec.GetState() != amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED {
			break
		}
	}
	return rec
}

// reaches waits for a version of a case's record, which customers may not see.
func (w *world) reaches(id string, version uint64) *amendsv1.CaseRecord {
	w.t.Helper()
	for {
		shown, err := w.staff.Record(w.ctx, allinone.Tenant, id, version)
		if problem, ok := errors.AsType[*deskapi.Problem](err); ok && problem.Code == deskapi.CodeVersionNotReached {
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		rec := &amendsv1.CaseRecord{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(shown.Record, rec); err != nil {
			w.t.Fatal(err)
		}
		return rec
	}
}

// Bug B23: the composer lies, each time in another way. The verifier reads the
// records itself and finds every one; what a customer gets of it is nothing,
// and a person writes instead. An honest draft passes (TRUTH-1).
func TestALyingComposerReachesNobodyB23(t *testing.T) {
	t.Parallel()
	const honest = "I found one payment of ₹2,000.00 for this order."
	lies := []string{
		honest + " Your refund was issued.",
		honest + " Your refund of ₹2,000.00 (reference rf_5521) was completed.",
		honest + " A refund of ₹2,000.00 has been requested and is pending at the bank.",
		honest + " We sent the money back to you.",
		honest + " You have been refunded.",
		honest + " Your refund has been approved.",
		honest + " You will receive your refund.",
		honest + " We'll refund it.",
		honest + " The money arrives in 5-7 business days.",
		honest + " You should see it soon.",
		honest + " The second payment was reversed.",
		honest + " The hold was released.",
		honest + " We credited your card.",
		honest + " You have been given a voucher.",
		honest + " Your request has been cancelled.",
		honest + " A specialist has taken over your request.",
		honest + " Not only that, your refund was completed.",
		"I found 3 payments of ₹2,000.00 for this order.",
		"I found one payment of ₹20,000.00 for this order.",
		"I found a duplicate payment: ₹2,000.00 was taken once more than owed.",
	}
	w := start(t, allinone.Options{NoSync: true, Apart: []roles.Service{roles.Composer}})
	said := func(order string) string {
		var i int
		if _, err := fmt.Sscanf(order, "96%02d", &i); err != nil || i >= len(lies) {
			return honest
		}
		return lies[i]
	}
	conn := w.asService(roles.Composer)
	ctx, cancel := context.WithCancel(w.ctx)
	var working sync.WaitGroup
	working.Go(func() {
		err := taskwork.Run(ctx, conn, taskwork.Options{Workers: 8, Slices: []amendsv1.Slice{amendsv1.Slice_SLICE_COMPOSE}}, func(_ context.Context, task taskwork.Task) (proto.Message, error) {
			s := task.Assign.GetCompose()
			return &amendsv1.Draft{
				Kind: s.GetKind(), Claims: s.GetFacts(), FactsSha256: s.GetFactsSha256(), Language: "en",
				Text: "About order " + s.GetOrderId() + ": " + said(s.GetOrderId()) + " If this does not match what you see, please reply to this message.",
			}, nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	defer working.Wait()
	defer cancel()
	w.each(len(lies)+1, 8, func(i int) error {
		order := fmt.Sprintf("96%02d", i)
		if err := w.Provider.Load(w.ctx, newBook(order, 200000, "INR", 2, 200000).Ledger); err != nil {
			return err
		}
		id := "req-" + order
		if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: id, CaseID: id, Message: "Order " + order + " was charged twice, please refund one."}); err != nil {
			return err
		}
		var last deskapi.View
		err := w.gateway.Follow(w.ctx, id, "", 0, func(v deskapi.View) error {
			if last = v; v.Closed || v.State == "HUMAN_HANDOFF" {
				return deskclient.ErrStop
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case i == len(lies):
			if len(last.Replies) != 1 || last.State != "VERIFIED_CLOSED" {
				t.Errorf("the honest draft ended %s with %+v: the test shows nothing", last.State, last.Replies)
			}
		case last.State != "HUMAN_HANDOFF" || len(last.Replies) != 0:
			t.Errorf("TRUTH-1: %q ended %s with %+v", lies[i], last.State, last.Replies)
		}
		return nil
	})
	w.quiet()
	for id, rec := range w.now() {
		for _, r := range rec.GetReplies() {
			for _, word := range promised {
				if strings.Contains(strings.ToLower(r.GetText()), word) {
					t.Errorf("TRUTH-1: %s was told %q", id, r.GetText())
				}
			}
		}
	}
	if n := len(w.refunds()); n != 0 {
		t.Errorf("%d refunds", n)
	}
	w.noDeadLetters()
}
