package executor_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/executor"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// Bug B18: what happened at the provider while the approval waited counts:
// a refund made in its dashboard, a dispute, a settlement taken back.
func TestTheOrderIsReadAgainBeforeTheIntentB18MONEY4(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	for name, c := range map[string]struct {
		change func(order string, l *sandbox.Ledger)
		want   string
	}{
		"refunded by hand":         {byHand("_b", 200000), ledger.ReasonExceedsCaptured},
		"partly by hand":           {byHand("_b", 1), ledger.ReasonExceedsCaptured},
		"the other one by hand":    {byHand("_a", 200000), ledger.ReasonNotOverpaid},
		"a dispute":                {dispute("_b", "open"), ledger.ReasonDisputed},
		"a dispute on the other":   {dispute("_a", "open"), ledger.ReasonDisputed},
		"an unknown dispute":       {dispute("_a", "warning_under_review"), ledger.ReasonContradictory},
		"only authorised":          {capture("authorized", false, false), ledger.ReasonNotSettled},
		"not settled":              {capture("captured", true, false), ledger.ReasonNotSettled},
		"contradictory":            {capture("settled", false, true), ledger.ReasonContradictory},
		"a status from the future": {capture("clearing", true, true), ledger.ReasonContradictory},
	} {
		order := strings.ReplaceAll(name, " ", "-")
		d.order(order, 200000, 2)
		a := duplicate(order, 200000)
		task := execute(a, d.sign(d.maya, a, 1))
		d.order(order, 200000, 2, func(l *sandbox.Ledger) { c.change(order, l) })
		d.expect(name, d.ask(task), refused, c.want)
		if calls := d.front.creates(order); len(calls) != 0 {
			t.Errorf("%s: the provider was called", name)
		}
		if e := d.entry(order); e != nil {
			t.Errorf("%s: entry %v", name, e)
		}
	}
	a := duplicate("unheard-of", 200000)
	d.expect("unknown order", d.ask(execute(a, d.sign(d.maya, a, 1))), refused, ledger.ReasonOrderUnknown)
	a = duplicate("cap", 200000)
	d.expect("reserved order", d.ask(execute(a, d.sign(d.maya, a, 1))), refused, ledger.ReasonReservedOrder)
	d.expect("reserved order cancelled", d.ask(cancel(a)), refused, ledger.ReasonReservedOrder)
}

func byHand(payment string, minor int64) func(string, *sandbox.Ledger) {
	return func(order string, l *sandbox.Ledger) {
		l.Refunds = append(l.Refunds, sandbox.Refund{
			RefundID: "rf_hand_" + order, Tenant: tenant, OrderID: order, PaymentID: "pay_" + order + payment,
			AmountMinor: minor, Currency: "INR", Status: "pending", CreatedAt: time.Now(),
		})
	}
}

func dispute(payment, status string) func(string, *sandbox.Ledger) {
	return func(order string, l *sandbox.Ledger) {
		l.Disputes = append(l.Disputes, sandbox.Dispute{DisputeID: "dp_" + order, Tenant: tenant, OrderID: order, PaymentID: "pay_" + order + payment, Status: status})
	}
}

func capture(status string, captured, settled bool) func(string, *sandbox.Ledger) {
	return func(_ string, l *sandbox.Ledger) {
		c := &l.Captures[1]
		c.Status, c.Captured, c.Settled = status, captured, settled
	}
}

// Bug B05: the same key with another amount is refused before the provider
// sees it, whatever became of the first.
func TestAKeyIsNotReusedForAnotherAmountB05(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	d.run()
	a := duplicate("8472", 200000)
	d.expect("first", d.ask(execute(a, d.sign(d.maya, a, 1))), acknowledged, "")
	b := duplicate("8472", 100000)
	d.expect("another amount", d.ask(execute(b, d.sign(d.maya, b, 2))), refused, ledger.ReasonKeyReused)
	c := duplicate("8472", 200000)
	c.Proposal = 2
	d.expect("another proposal", d.ask(execute(c, d.sign(d.maya, c, 3))), refused, ledger.ReasonKeyReused)
	d.onlyRefund("8472", 200000)
	if n := len(d.front.creates("8472")); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TRUTH-2: only a refund id of the provider makes an acknowledgement. The
// call's classes reach the entry and the answer as they are.
func TestWhatTheProviderAnswersIsWhatIsSaidTRUTH2(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	asked := func(order, rest string) string {
		return `{"refund":{` + rest + `"payment_id":"pay_` + order + `_b","amount_minor":200000,"currency":"INR"}}`
	}
	for name, c := range map[string]struct {
		status int
		body   string
		want   amendsv1.EffectClass
		reason string
		calls  int
	}{
		"created without a refund":  {201, asked("created-without-a-refund", ""), unknown, "answer_without_refund_id", 1},
		"created, unreadable":       {201, "<html>", unknown, "answer_unreadable", 1},
		"created, another payment":  {201, asked("x", `"refund_id":"rf_1","status":"pending",`), unknown, "answer_mismatch", 1},
		"created and failed":        {201, asked("created-and-failed", `"refund_id":"rf_1","status":"failed",`), refused, ledger.ReasonProviderFailed, 1},
		"refused":                   {422, `{"code":"disputed"}`, refused, "disputed", 1},
		"key known with other body": {409, `{"code":"idempotency_key_reused"}`, refused, "idempotency_key_reused", 1},
		"key at work":               {409, `{"code":"idempotency_in_progress"}`, unknown, "idempotency_in_progress", 1},
		"broken":                    {500, ``, unknown, "http_500", 1},
		"not now":                   {429, ``, noEffect, "http_429", 3},
		"not with this key":         {401, ``, noEffect, "http_401", 3},
	} {
		order := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
		d.order(order, 200000, 2)
		a := duplicate(order, 200000)
		d.front.disturb(respond(c.status, c.body))
		res := d.ask(execute(a, d.sign(d.maya, a, 1)))
		d.front.disturb(nil)
		d.expect(name, res, c.want, c.reason)
		if o := d.entry(order).GetIntents()[0].GetOutcome(); o.GetClass() != c.want || o.GetReason() != c.reason {
			t.Errorf("%s: recorded %v", name, o)
		}
		if n := len(d.front.creates(order)); n != c.calls {
			t.Errorf("%s: %d calls, want %d", name, n, c.calls)
		}
		if n, _ := d.refunds(order); n != 0 {
			t.Errorf("%s: %d refunds", name, n)
		}
	}
}

// What provably did nothing may be begun again, and only that: a refusal is
// final for its key.
func TestOnlyNothingDoneIsBegunAgain(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.run()
	for _, c := range []struct {
		order  string
		status int
		body   string
		want   amendsv1.EffectClass
		reason string
	}{{"busy", 429, "", acknowledged, ""}, {"refused", 422, `{"code":"disputed"}`, refused, "disputed"}} {
		d.order(c.order, 200000, 2)
		a := duplicate(c.order, 200000)
		task := execute(a, d.sign(d.maya, a, 1))
		d.front.disturb(respond(c.status, c.body))
		d.ask(task)
		d.front.disturb(nil)
		d.expect(c.order+" again", d.ask(task), c.want, c.reason)
	}
	d.onlyRefund("busy", 200000)
	if in := d.entry("busy").GetIntents()[0]; in.GetCalls() != 2 || in.GetVoidCalls() != 1 {
		t.Errorf("intent %v", in)
	}
}

// Bug B01: the refund is made, the answer is lost. Asked again, the same key
// and bytes find it; the doubt holds its place against other cases meanwhile.
func TestALostAnswerIsFoundBySendingTheSameAgainB01MONEY1(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	d.run()
	a := duplicate("8472", 200000)
	task := execute(a, d.sign(d.maya, a, 1))
	d.front.disturb(loseAnswer)
	d.expect("answer lost", d.ask(task), unknown, "connection_lost")
	d.front.disturb(nil)
	other := ofCase(action("8472", refund{"pay_8472_a", 200000}), "req-other")
	d.expect("another case", d.ask(execute(other, d.sign(d.ravi, other, 1))), refused, ledger.ReasonNotOverpaid)
	res := d.ask(task)
	d.expect("asked again", res, acknowledged, "")
	if id := res.GetRefunds()[0].GetOutcome().GetRefundId(); id != "rf_5521" {
		t.Errorf("refund %s", id)
	}
	d.onlyRefund("8472", 200000)
	d.sameCalls("8472", 2)
}

// A doubt is not settled by a refusal of the second call, nor by calling when
// the provider may have forgotten the key (bug B04, 25 h), keeps none, or the
// order would not carry the refund any more: the provider is asked what there
// is, and what that does not settle is for people.
func TestADoubtIsNotGuessedAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit   func(*executor.Config, *executor.Deps)
		change func(order string, l *sandbox.Ledger)
		answer func(http.ResponseWriter, *http.Request, http.Handler) bool
		want   amendsv1.EffectClass
		reason string
		calls  int
	}{
		"refused the second time":                       {nil, nil, respond(422, `{"code":"not_refundable"}`), unknown, ledger.ReasonOtherCallOpen, 2},
		"the key is forgotten":                          {nil, nil, nil, acknowledged, "", 1},
		"the key is forgotten, not made the first time": {nil, nil, nil, noEffect, ledger.ReasonProvenAbsent, 1},
		"no keys are kept":                              {func(c *executor.Config, _ *executor.Deps) { c.Payments.KeyWindow = 0 }, nil, nil, acknowledged, "", 1},
		"no keys are kept, not made the first time":     {func(c *executor.Config, _ *executor.Deps) { c.Payments.KeyWindow = 0 }, nil, nil, undecidable, "provider_keeps_no_keys", 1},
		"refunded by hand since":                        {nil, byHand("_a", 200000), nil, undecidable, ledger.ReasonNotOverpaid, 1},
		"disputed since":                                {nil, dispute("_b", "open"), nil, undecidable, ledger.ReasonDisputed, 1},
		"nothing happened":                              {nil, nil, nil, acknowledged, "", 2},
		"not made the first time":                       {nil, nil, nil, acknowledged, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.order("8472", 200000, 2)
			stop := d.run()
			a := duplicate("8472", 200000)
			task := execute(a, d.sign(d.maya, a, 1))
			d.front.disturb(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
				if strings.HasSuffix(name, "not made the first time") || c.change != nil {
					pass = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
				}
				return loseAnswer(w, r, pass)
			})
			d.expect("first", d.ask(task), unknown, "connection_lost")
			stop()
			d.front.disturb(c.answer)
			if c.change != nil {
				d.order("8472", 200000, 2, func(l *sandbox.Ledger) { c.change("8472", l) })
			}
			if c.edit == nil {
				c.edit = func(*executor.Config, *executor.Deps) {}
			}
			d.run(c.edit)
			if strings.HasPrefix(name, "the key is forgotten") {
				d.later(25 * time.Hour)
			}
			d.expect("second", d.ask(d.renew(task)), c.want, c.reason)
			if n := len(d.front.creates("8472")); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
			if n, _ := d.refunds("8472"); n > 1 {
				t.Errorf("%d refunds", n)
			}
		})
	}
}

// A call may start only inside its window.
func TestACallStartsOnlyInsideItsWindow(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	stop := d.run(func(_ *executor.Config, deps *executor.Deps) { deps.Now, deps.Reached = pauseAfterIntent() })
	a := duplicate("8472", 200000)
	task := execute(a, d.sign(d.maya, a, 1))
	d.expect("paused for too long", d.ask(task), noEffect, "call_window_passed")
	d.noRefund("8472")
	stop()
	d.run()
	d.expect("asked again", d.ask(task), acknowledged, "")
	d.onlyRefund("8472", 200000)
}

// pauseAfterIntent gives a clock and a hook: after the first intent a minute
// has passed, as if the process had been paused.
func pauseAfterIntent() (now func() time.Time, reached func(context.Context, executor.Step, string) error) {
	var ahead atomic.Int64
	now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	reached = func(_ context.Context, s executor.Step, _ string) error {
		if s == executor.IntentDurable {
			ahead.Store(int64(time.Minute))
		}
		return nil
	}
	return now, reached
}

// The provider's own record is read back; one that differs from what was asked
// for keeps the case open.
func TestARefundThatReadsBackDifferentlyIsAGap(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.order("8472", 200000, 2)
	d.run()
	a := duplicate("8472", 200000)
	task := execute(a, d.sign(d.maya, a, 1))
	for name, other := range map[string][2]string{
		"another amount":    {`"amount_minor":200000`, `"amount_minor":2000000`},
		"another payment":   {`"payment_id":"pay_8472_b"`, `"payment_id":"pay_8472_a"`},
		"another reference": {`"reference":"refund:req-8472:pay_8472_b"`, `"reference":"refund:req-1:pay_8472_b"`},
	} {
		d.front.disturb(func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool {
			if !strings.HasPrefix(r.URL.Path, "/v1/refunds/") {
				return false
			}
			rec := httptest.NewRecorder()
			pass.ServeHTTP(rec, r)
			if !strings.Contains(rec.Body.String(), other[0]) {
				t.Errorf("the provider's answer has no %s: %s", other[0], rec.Body)
			}
			_, _ = w.Write([]byte(strings.Replace(rec.Body.String(), other[0], other[1], 1))) // the caller checks
			return true
		})
		d.expect(name, d.ask(task), gap, "read_back_differs")
	}
	d.front.disturb(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !strings.HasPrefix(r.URL.Path, "/v1/refunds/") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	res := d.ask(task)
	d.expect("not readable", res, acknowledged, "")
	if res.GetRefunds()[0].GetReadBack() != nil {
		t.Error("read back what cannot be read")
	}
}
