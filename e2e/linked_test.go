package e2e_test

import (
	"errors"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/roles"
)

// continued waits until a closed case names the linked one that goes on.
func (w *world) continued(id string) string {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		v, err := w.gateway.View(w.ctx, id, "")
		if err != nil {
			w.t.Fatal(err)
		}
		if v.ContinuedBy != "" {
			return v.ContinuedBy
		}
		<-tick.C // the context of the next read bounds it
	}
}

// A customer writes again after the case was closed: that opens a linked case
// of the same request, once however often the message is sent (LOSS-1), with
// the order known. Nothing leaves the closed case (STATE-3) and nothing is
// refunded again (MONEY-4).
func TestMessageAfterTheEndOpensALinkedCase(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true, Orchestrators: 2})
	b := newBook("9004", 99999, "INR", 2, 99999, 99999)
	if err := w.Provider.Load(w.ctx, b.Ledger); err != nil {
		t.Fatal(err)
	}
	const id = "req-9004"
	if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: "k", CaseID: id, Message: "Order 9004 was charged twice, please refund one."}); err != nil {
		t.Fatal(err)
	}
	first := w.until(id, 0, closed)
	w.each(6, 6, func(int) error {
		_, err := w.gateway.Message(w.ctx, deskclient.Message{Key: "again", CaseID: id, Message: "where is my refund?"})
		return err
	})
	if got := w.continued(id); got != id+"-2" {
		t.Fatalf("continued by %q", got)
	}
	second := w.until(id+"-2", 0, closed)
	if second.RequestID != id || second.OrderID != "9004" || len(second.Replies) != 1 || second.State != "VERIFIED_CLOSED" {
		t.Errorf("the linked case is %+v", second)
	}
	// To the first once more, now that both are closed; and taken back, which
	// can no longer be: a person looks.
	if _, err := w.gateway.Message(w.ctx, deskclient.Message{Key: "third", CaseID: id, Message: "please cancel my refund request"}); err != nil {
		t.Fatal(err)
	}
	if got := w.continued(id + "-2"); got != id+"-3" {
		t.Fatalf("continued by %q", got)
	}
	third := w.until(id+"-3", 0, func(v deskapi.View) bool { return len(v.Replies) > 0 })
	if third.State != "HUMAN_HANDOFF" {
		t.Errorf("the third case is %+v", third)
	}
	if after, err := w.gateway.View(w.ctx, id, ""); err != nil || after.State != first.State || len(after.Replies) != 1 {
		t.Errorf("STATE-3: the closed case is %+v, %v", after, err)
	}
	if made := w.refunds(); len(made) != 1 {
		t.Errorf("MONEY-4: refunds %+v", made)
	}
	logs := w.logs()
	if len(logs) != 3 {
		t.Errorf("LOSS-1: %d cases", len(logs))
	}
	for name, log := range logs {
		rec, err := casework.Replay(log, casework.DefaultLimits(), payload)
		if err != nil {
			t.Errorf("STATE-1: %s: %v", name, err)
			continue
		}
		seen := map[string]int{}
		for _, h := range rec.GetHandled() {
			if h.GetSender() == string(roles.Gateway) {
				seen[h.GetMessageId()]++
			}
		}
		for message, n := range seen {
			if n > 1 {
				t.Errorf("LOSS-1: %s holds %s %d times", name, message, n)
			}
		}
	}
	w.noDeadLetters()
}

// LOSS-1: two texts race under one key to a closed case, handled by two
// orchestrators. One of them is taken, by the linked case and in the words of
// the closed one; nobody who sent the other hears 202.
func TestTwoTextsUnderOneKeyAfterTheEndLOSS1(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true, Orchestrators: 2})
	b := newBook("9005", 99999, "INR", 2, 99999, 99999)
	if err := w.Provider.Load(w.ctx, b.Ledger); err != nil {
		t.Fatal(err)
	}
	const id = "req-9005"
	if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: "k", CaseID: id, Message: "Order 9005 was charged twice, please refund one."}); err != nil {
		t.Fatal(err)
	}
	w.until(id, 0, closed)
	texts := []string{"where is my refund?", "is it on its way?"}
	taken := make([]bool, 20)
	w.each(len(taken), len(taken), func(i int) error {
		for try := 0; ; try++ {
			_, err := w.gateway.Message(w.ctx, deskclient.Message{Key: "again", CaseID: id, Message: texts[i%2]})
			problem, ok := errors.AsType[*deskapi.Problem](err)
			switch {
			case err == nil:
				taken[i] = true
				return nil
			case ok && problem.Code == deskapi.CodeKeyReused:
				return nil
			case !ok || problem.RetryAfter == 0 || try == 20:
				return err
			}
		}
	})
	w.until(id+"-2", 0, closed)
	log := w.logs()[id+"-2"]
	if len(log) == 0 {
		t.Fatalf("there is no linked case: %v", w.logs())
	}
	messages := log[len(log)-1].GetRecord().GetMessages()
	if len(messages) != 1 {
		t.Fatalf("the linked case holds %v", messages)
	}
	for i, got := range taken {
		if won := messages[0].GetText().GetText() == texts[i%2]; got != won {
			t.Errorf("%q was taken, %q was answered 202: %t", messages[0].GetText().GetText(), texts[i%2], got)
		}
	}
	w.noDeadLetters()
}
