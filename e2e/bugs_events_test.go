package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// asService connects on the credential of a service of the desk.
func (w *world) asService(s roles.Service) *bus.Conn {
	w.t.Helper()
	conn, err := bus.Connect(w.ctx, bus.Config{URL: w.BrokerURL(), Service: s, Seed: w.Seed(s), Manifest: roles.Desk()}, bus.Deps{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(conn.Close)
	return conn
}

// stops pulls or lifts the emergency stop of the trial tenant.
func (w *world) stops(stopped bool) {
	w.t.Helper()
	data, err := proto.Marshal(&amendsv1.StopSwitch{Scope: allinone.Tenant, Stopped: stopped, By: allinone.StaffMember, Reason: "a test", At: timestamppb.Now()})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.asService(roles.Console).Publish(w.ctx, subject.Control(allinone.Tenant), data); err != nil {
		w.t.Fatal(err)
	}
}

// now gives the newest record of every case.
func (w *world) now() map[string]*amendsv1.CaseRecord {
	w.t.Helper()
	out := map[string]*amendsv1.CaseRecord{}
	for id, log := range w.logs() {
		out[id] = log[len(log)-1].GetRecord()
	}
	return out
}

// Bug B08: two refunds of one order. The news of the first, again and after
// that of the second, changes nothing, and makes no refund and no reply (B24).
func TestLateNewsOfTheFirstOfTwoRefundsB08(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.faults(sandbox.Fault{Kind: sandbox.WebhookLost}) // the test says it itself
	if err := w.Provider.Load(w.ctx, newBook("9023", 200000, "INR", 2, 200000, 200000, 200000).Ledger); err != nil {
		t.Fatal(err)
	}
	id, waiting := w.asks("9023", "order 9023 got charged THREE times!")
	if err := w.approve(id, waiting.Version); err != nil {
		t.Fatal(err)
	}
	w.until(id, waiting.Version, closed)
	made := w.refunds()
	one, two := made["pay_9023_b"], made["pay_9023_c"]
	if len(made) != 2 || one.RefundID == "" || two.RefundID == "" {
		t.Fatalf("refunds %+v", made)
	}
	before := w.now()[id]
	for i, r := range []sandbox.Refund{one, two, one, two, one} {
		w.tell(fmt.Sprintf("evt_%s", r.RefundID), providerEvent("refund.created", "9023", r.RefundID))
		w.tell(fmt.Sprintf("evt_again_%d", i), providerEvent("refund.updated", "9023", r.RefundID)) // the same under another id
		w.quiet()
	}
	after := w.now()[id]
	if after.GetState() != before.GetState() || len(after.GetReplies()) != 1 || len(after.GetEffect().GetRefunds()) != 2 {
		t.Errorf("the case went from %s to %s, with %d replies and %v", casework.StateName(before.GetState()), casework.StateName(after.GetState()), len(after.GetReplies()), after.GetEffect())
	}
	for i, r := range after.GetEffect().GetRefunds() {
		if r.GetOutcome().GetRefundId() != before.GetEffect().GetRefunds()[i].GetOutcome().GetRefundId() {
			t.Errorf("the record forgot a refund: %v", after.GetEffect())
		}
	}
	if again := w.refunds(); !maps.Equal(again, made) {
		t.Errorf("MONEY-1: refunds %+v, before %+v", again, made)
	}
	w.noDeadLetters()
}

// permutations gives every order of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			out = append(out, slices.Insert(slices.Clone(p), at, n-1))
		}
	}
	return out
}

// Bug B11: authorised, captured, settled and refunded of one payment, told in
// each of the 24 orders to a case each: all come to the same end, for each
// reads what is so instead of what it was told.
func TestEventsInEveryOrderB11(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	w.faults(sandbox.Fault{Kind: sandbox.WebhookLost}) // the test says it itself
	orders := permutations(4)
	w.orders(len(orders), false)
	w.each(len(orders), 12, func(i int) error {
		if err := w.post(i); err != nil {
			return err
		}
		_, err := w.finish(i, func(v deskapi.View) bool { return v.State == "HOLD_FOR_EVIDENCE" && len(v.Replies) > 0 })
		return err
	})
	ends := make([]string, len(orders))
	w.each(len(orders), 12, func(i int) error {
		payment := "pay_" + orderID(i) + "_b"
		if err := w.Provider.SetCaptureStatus(w.ctx, allinone.Tenant, payment, "settled"); err != nil {
			return err
		}
		events := [][2]string{{"capture.updated", payment}, {"capture.updated", payment}, {"capture.settled", payment}, {"refund.created", "rf_of_nobody"}}
		for n, e := range orders[i] {
			w.tell(fmt.Sprintf("evt_%d_%d", i, e), providerEvent(events[e][0], orderID(i), events[e][1]))
			if n == 1 && i%2 == 1 { // half of them with the desk's work in between
				w.until(caseID(i), 0, in("AWAITING_APPROVAL"))
			}
		}
		return nil
	})
	w.quiet() // an event voids what is proposed
	w.each(len(orders), 12, func(i int) error {
		_, err := w.finish(i, closed)
		return err
	})
	w.quiet()
	records, made := w.now(), w.refunds()
	for i := range orders {
		rec := records[caseID(i)]
		var b strings.Builder
		fmt.Fprintf(&b, "%s, %d replies", casework.StateName(rec.GetState()), len(rec.GetReplies()))
		for _, r := range rec.GetEffect().GetRefunds() {
			fmt.Fprintf(&b, ", %s %d %s", r.GetPaymentId(), r.GetAmount().GetMinor(), r.GetOutcome().GetProviderStatus())
		}
		for _, c := range rec.GetPayment().GetCaptures() {
			fmt.Fprintf(&b, ", %s %s", c.GetPaymentId(), c.GetStatus())
		}
		ends[i] = strings.ReplaceAll(b.String(), orderID(i), "ORDER")
		if ends[i] != ends[0] || made["pay_"+orderID(i)+"_b"].AmountMinor != 200000 {
			t.Errorf("told in the order %v: %s; in the order %v: %s", orders[i], ends[i], orders[0], ends[0])
		}
	}
	if rec := records[caseID(0)]; rec.GetState() != amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED || len(made) != len(orders) {
		t.Errorf("ended %s, %d refunds", ends[0], len(made))
	}
	w.noDeadLetters()
}

// Bug B12: whatever a case is doing when the provider's news come, it passes
// the same test: 20 copies at once, more one after the other, and once more
// after a restart, when the gateway has forgotten which it has seen, are one
// input, which follows one row, and no refund more than without.
func TestEveryReceiverOfEventsTakesEachOnceB12(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, allinone.Options{Dir: dir, NoSync: true})
	w.faults(sandbox.Fault{Kind: sandbox.WebhookLost}) // the test says it itself
	const twice = "Order %s was charged twice, please refund one."
	cases := []struct {
		book    *book
		message string
		state   string
		refunds int
	}{
		{newBook("9101", 200000, "INR", 2, 200000, 200000).hold(1), twice, "HOLD_FOR_EVIDENCE", 0},
		{newBook("9102", 200000, "INR", 2, 200000, 200000), twice, "AWAITING_APPROVAL", 0},
		{newBook("9103", 99999, "INR", 2, 99999, 99999), twice, "VERIFIED_CLOSED", 1},
		{newBook("9104", 200000, "INR", 2, 200000), twice, "VERIFIED_CLOSED", 0},
		{newBook("9105", 500000, "INR", 2, 500000, 500000).refunded(1, 50000, "succeeded"), twice, "HUMAN_HANDOFF", 1},
		{newBook("9106", 200000, "INR", 2, 200000, 200000), "Please cancel my refund request for order %s.", "CANCELLED", 0},
		{newBook("9107", 99999, "INR", 2, 99999, 99999), twice, "REFUND_REQUESTED", 0}, // held by the stop
	}
	for _, c := range cases {
		if err := w.Provider.Load(w.ctx, c.book.Ledger); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range cases {
		if i == len(cases)-1 {
			w.stops(true)
		}
		id := "req-" + c.book.id
		if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: id, CaseID: id, Message: strings.ReplaceAll(c.message, "%s", c.book.id)}); err != nil {
			t.Fatal(err)
		}
		w.until(id, 0, in(c.state))
	}
	w.quiet()
	before := w.now()
	kinds := []string{"refund.created", "refund.failed", "capture.settled", "dispute.updated"}
	tellAll := func(w *world, copies int) {
		for _, c := range cases {
			for _, kind := range kinds {
				object := "pay_" + c.book.id + "_b"
				if strings.HasPrefix(kind, "refund.") {
					object = "rf_of_nobody"
				}
				barrier := make(chan struct{})
				var all sync.WaitGroup
				for range copies {
					all.Go(func() {
						<-barrier
						w.tell("evt_"+strings.ReplaceAll(kind, ".", "_")+c.book.id, providerEvent(kind, c.book.id, object))
					})
				}
				close(barrier)
				all.Wait()
			}
		}
		w.quiet()
	}
	tellAll(w, 20)
	tellAll(w, 1)
	first := w.now()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = start(t, allinone.Options{Dir: dir, NoSync: true})
	w.faults(sandbox.Fault{Kind: sandbox.WebhookLost})
	tellAll(w, 20)
	after := w.now()
	l, err := w.Provider.Ledger(context.WithoutCancel(w.ctx))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		id := "req-" + c.book.id
		told := map[string]int{}
		for _, h := range after[id].GetHandled()[len(before[id].GetHandled()):] {
			if h.GetSender() == string(roles.Gateway) {
				told[h.GetMessageId()]++
			}
		}
		for message, n := range told {
			if n > 1 {
				t.Errorf("%s, a case in %s: the event %s was taken in %d times", id, c.state, message, n)
			}
			rows := 0
			for _, e := range after[id].GetTimeline() {
				if e.GetMessageId() == message {
					rows++
				}
			}
			if rows > 1 {
				t.Errorf("%s, a case in %s: one event is %d versions", id, c.state, rows)
			}
		}
		if heard := len(told); heard > len(kinds) || heard == 0 && i < 2 {
			t.Errorf("%s, a case in %s: %d inputs from %d events", id, c.state, heard, len(kinds))
		}
		if got, want := after[id].GetVersion(), first[id].GetVersion(); got != want {
			t.Errorf("%s, a case in %s: what was told again after a restart took it from v%d to v%d", id, c.state, want, got)
		}
		n := 0
		for _, r := range l.Refunds {
			if r.OrderID == c.book.id {
				n++
			}
		}
		if n != c.refunds {
			t.Errorf("MONEY-1: %s, a case in %s: %d refunds, want %d", id, c.state, n, c.refunds)
		}
	}
	w.noDeadLetters()
}
