package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// hold brings a case to where it waits for a hold to be settled.
func (w *world) hold() {
	w.t.Helper()
	w.orders(1, false)
	if err := w.post(0); err != nil {
		w.t.Fatal(err)
	}
	v, err := w.finish(0, func(v deskapi.View) bool { return len(v.Replies) > 0 })
	if err != nil {
		w.t.Fatal(err)
	}
	if v.State != "HOLD_FOR_EVIDENCE" {
		w.t.Fatalf("the case is in %s", v.State)
	}
}

// rows gives the rows of the table a case followed, in order.
func (w *world) rows(id string) []string {
	var out []string
	log := w.logs()[id]
	if len(log) == 0 {
		return nil
	}
	for _, e := range log[len(log)-1].GetRecord().GetTimeline() {
		out = append(out, e.GetRow())
	}
	return out
}

func count(rows []string, row string) (n int) {
	for _, r := range rows {
		if r == row {
			n++
		}
	}
	return n
}

// Path B goes on as soon as the provider reports that the hold was settled,
// hours before the recheck: approval, one refund. The provider tells it three
// times over, and says of the refund before it answers the call that made it
// (B09).
func TestSettlementOfTheHoldWakesTheCaseB09(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.hold()
	w.faults(sandbox.Fault{Kind: sandbox.WebhookCopies, Copies: 3}, sandbox.Fault{Kind: sandbox.WebhookBeforeAnswer})
	if err := w.Provider.SetCaptureStatus(w.ctx, allinone.Tenant, "pay_8472_b", "settled"); err != nil {
		t.Fatal(err)
	}
	v, err := w.finish(0, closed)
	if err != nil {
		t.Fatal(err)
	}
	if v.State != "VERIFIED_CLOSED" {
		t.Errorf("ended %s", v.State)
	}
	if r := w.refunds(); len(r) != 1 || r["pay_8472_b"].AmountMinor != 200000 {
		t.Errorf("refunds %+v", r)
	}
	rows := w.rows(caseID(0))
	if count(rows, "recheck.provider") != 1 || count(rows, "effect.acknowledged") != 1 || count(rows, "action.void.provider") != 0 {
		t.Errorf("rows %q", rows)
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// B10: 50 copies of one event from a barrier, among others that are not about
// the case, are one transition. B11: what comes late or out of order leads to
// the same end.
func TestFiftyCopiesOfAnEventB10(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.hold()
	// The ledger changes without a word; the test says it itself.
	w.faults(sandbox.Fault{Kind: sandbox.WebhookLost})
	if err := w.Provider.SetCaptureStatus(w.ctx, allinone.Tenant, "pay_8472_b", "settled"); err != nil {
		t.Fatal(err)
	}
	settled := providerEvent("capture.settled", "8472", "pay_8472_b")
	barrier := make(chan struct{})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			<-barrier
			w.tell("evt_settled", settled)
			w.tell("evt_other_"+strconv.Itoa(i), providerEvent("capture.settled", "9999", "pay_x"))
			w.tell("evt_kind_"+strconv.Itoa(i), providerEvent("payout.paid", "8472", "po_1"))
		})
	}
	close(barrier)
	all.Wait()
	v, err := w.finish(0, closed)
	if err != nil {
		t.Fatal(err)
	}
	w.tell("evt_settled", settled) // once more, after everything
	rows := w.rows(caseID(0))
	if v.State != "VERIFIED_CLOSED" || count(rows, "recheck.provider") != 1 || count(rows, "input.refused") != 0 || len(w.refunds()) != 1 {
		t.Errorf("ended %s with %d refunds by %q", v.State, len(w.refunds()), rows)
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)
	w.noDeadLetters()
}

// A claim of the provider that is not so moves no money and closes nothing: the
// case reads for itself, and waits on (MONEY-1).
func TestFalseSettlementMovesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.hold()
	w.tell("evt_false", providerEvent("capture.settled", "8472", "pay_8472_b"))
	v, err := w.finish(0, func(v deskapi.View) bool {
		return v.State == "HOLD_FOR_EVIDENCE" && len(v.Timeline) > 4
	})
	if err != nil {
		t.Fatal(err)
	}
	if rows := w.rows(caseID(0)); count(rows, "recheck.provider") != 1 || count(rows, "merge.hold") != 2 {
		t.Errorf("rows %q", rows)
	}
	if v.Closed || len(w.refunds()) != 0 {
		t.Errorf("closed %t with %d refunds", v.Closed, len(w.refunds()))
	}
}

// A refund that fails after its case was closed goes to a person.
func TestRefundThatFailsLaterReachesAPerson(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.orders(1, true)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.finish(0, closed); err != nil {
		t.Fatal(err)
	}
	refund := w.refunds()["pay_8472_b"]
	w.faults(sandbox.Fault{Kind: sandbox.WebhookCopies, Copies: 5})
	if err := w.Provider.SetRefundStatus(w.ctx, refund.RefundID, "failed"); err != nil {
		t.Fatal(err)
	}
	var v deskapi.View
	for v.State != "HUMAN_HANDOFF" {
		var err error
		if v, err = w.gateway.View(w.ctx, caseID(0), ""); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.ctx.Done():
			t.Fatalf("the case stays in %s", v.State)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if rows := w.rows(caseID(0)); count(rows, "refund.failed_later") != 1 || len(w.refunds()) != 1 {
		t.Errorf("rows %q, %d refunds", rows, len(w.refunds()))
	}
}

// TRUTH-2: a signed webhook that says what is not so moves nothing: the executor
// reads the refund, and the closed case stays as its customer sees it.
func TestAWebhookThatIsNotSoMovesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{})
	w.orders(1, true)
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	before, err := w.finish(0, closed)
	if err != nil {
		t.Fatal(err)
	}
	refund := w.refunds()["pay_8472_b"]
	w.tell("evt-lie", fmt.Sprintf(`{"type":"refund.failed","timestamp":%q,"data":{"tenant":%q,"order_id":"8472","object_id":%q,"reference":"refund:%s:pay_8472_b"}}`,
		time.Now().UTC().Format(time.RFC3339Nano), allinone.Tenant, refund.RefundID, caseID(0)))
	for count(w.rows(caseID(0)), "refund.confirmed") == 0 {
		select {
		case <-w.ctx.Done():
			t.Fatalf("nothing is confirmed: %q", w.rows(caseID(0)))
		case <-time.After(20 * time.Millisecond):
		}
	}
	after, err := w.gateway.View(w.ctx, caseID(0), "")
	if err != nil || after.State != "VERIFIED_CLOSED" || after.Version != before.Version || !after.UpdatedAt.Equal(*before.UpdatedAt) || count(w.rows(caseID(0)), "refund.failed_later") != 0 {
		t.Errorf("the case is %+v, was %+v, %v", after, before, err)
	}
}

// providerEvent gives the body of a webhook of the provider.
func providerEvent(kind, order, object string) string {
	body, _ := json.Marshal(map[string]any{
		"type": kind, "timestamp": time.Now().UTC(), "data": map[string]string{"tenant": allinone.Tenant, "order_id": order, "object_id": object},
	})
	return string(body)
}

// tell signs and sends one, as the provider does: again until it is taken.
func (w *world) tell(id, body string) {
	keys, err := webhook.ParseSecrets(w.Trial.ProviderSecret)
	if err != nil {
		w.t.Error(err)
		return
	}
	for {
		header, err := keys.Sign(id, time.Now(), []byte(body))
		if err != nil {
			w.t.Error(err)
			return
		}
		req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.GatewayURL+deskapi.ProviderEventsPath, strings.NewReader(body))
		if err != nil {
			w.t.Error(err)
			return
		}
		req.Header = header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			w.t.Error(err)
			return
		}
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusAccepted:
			return
		case http.StatusServiceUnavailable: // the read model is not ready yet
		default:
			w.t.Errorf("event %s: status %d", id, resp.StatusCode)
			return
		}
		select {
		case <-w.ctx.Done():
			w.t.Errorf("event %s was not taken", id)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A reply reaches its channel's webhook once, signed, and its delivery is there
// to be seen; a restart of the desk sends nothing again (B24).
func TestReplyReachesTheWebhookB24(t *testing.T) {
	t.Parallel()
	type hook struct {
		id   string
		body deskapi.Webhook
	}
	var mu sync.Mutex
	var got []hook
	var secret string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		keys, err := webhook.ParseSecrets(secret)
		if err != nil {
			t.Error(err)
		}
		h := hook{}
		if h.id, err = keys.Verify(r.Header, text, time.Now()); err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(text, &h.body); err != nil {
			t.Error(err)
		}
		got = append(got, h)
	}))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	run := func() *world {
		w := start(t, allinone.Options{Dir: dir, Webhook: receiver.URL})
		mu.Lock()
		secret = w.Trial.WebhookSecret
		mu.Unlock()
		return w
	}
	w := run()
	w.orders(2, true)
	finish := func(w *world, i int) deskapi.Delivery {
		if err := w.post(i); err != nil {
			t.Fatal(err)
		}
		if _, err := w.finish(i, closed); err != nil {
			t.Fatal(err)
		}
		for {
			d, err := w.gateway.Deliveries(w.ctx, caseID(i), "")
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Deliveries) == 1 && d.Deliveries[0].Status == "delivered" {
				return d.Deliveries[0]
			}
			select {
			case <-w.ctx.Done():
				t.Fatalf("deliveries %+v", d)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	first := finish(w, 0)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	second := finish(run(), 1)
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || got[0].id != first.WebhookID || got[1].id != second.WebhookID {
		t.Fatalf("got %+v, want %s and %s", got, first.WebhookID, second.WebhookID)
	}
	if b := got[0].body; b.Type != "case.reply" || b.Data.CaseID != caseID(0) || b.Data.State != "VERIFIED_CLOSED" || b.Data.Reply.Version != 9 || !strings.Contains(b.Data.Reply.Text, "pending") {
		t.Errorf("got %+v", b)
	}
}
