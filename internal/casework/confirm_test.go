package casework_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	confirms        = amendsv1.Slice_SLICE_CONFIRM
	statusSucceeded = amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED
	statusFailed    = amendsv1.RefundStatus_REFUND_STATUS_FAILED
	statusCanceled  = amendsv1.RefundStatus_REFUND_STATUS_CANCELED
)

// refundedWorld is a closed case that made the refund rf_5521, pending.
func refundedWorld(t *testing.T) *world {
	t.Helper()
	w := requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
	w.settle()
	w.is("VERIFIED_CLOSED")
	return w
}

func (w *world) rows(name string) (n int) {
	for _, e := range w.rec.GetTimeline() {
		if e.GetRow() == name {
			n++
		}
	}
	return n
}

func (w *world) answer(slice amendsv1.Slice, payload proto.Message) {
	w.tb.Helper()
	w.apply(w.reply(w.mustTask(slice), payload))
}

func (w *world) asked() *amendsv1.ConfirmOrder {
	w.tb.Helper()
	return w.mustTask(confirms).Payload.GetConfirm()
}

// TRUTH-2: what the provider's webhook says of a refund moves nothing; what the
// executor reads does. A closed case looks the same all the while.
func TestAWebhookIsConfirmedByARead(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	view := casework.View(w.rec)
	w.told("refund.failed", "rf_5521")
	if next, waits := casework.Next(w.rec); !waits || w.rec.GetState() != amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED {
		t.Fatalf("LIVE-1: %s, waits %t until %s", casework.StateName(w.rec.GetState()), waits, next)
	}
	o := w.asked()
	if o.GetAction().GetRefunds()[0].GetPaymentId() != "pay_8472_b" || len(o.GetEvents()) != 1 || o.GetEvents()[0].GetObjectId() != "rf_5521" {
		t.Fatalf("asked %v", o)
	}
	w.answer(confirms, w.readAgain(o.GetAction(), statusSucceeded))
	if r := w.rec.GetEffect().GetRefunds()[0]; r.GetOutcome().GetProviderStatus() != statusSucceeded || r.GetReadBack().GetStatus() != statusSucceeded {
		t.Errorf("the effect is %v", r)
	}
	if !proto.Equal(view, casework.View(w.rec)) {
		t.Errorf("the view changed: %v", casework.View(w.rec))
	}
	if _, waits := casework.Next(w.rec); waits || len(w.rec.GetUnconfirmed()) != 0 || len(w.rec.GetReplies()) != 1 {
		t.Errorf("waits %t, %v", waits, w.rec.GetUnconfirmed())
	}
	w.replays()
}

// MONEY-3: a refund that is read as failed or canceled is for people, from every
// state that may carry one.
func TestAFailedRefundReachesPeople(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		walk   func(*testing.T) *world
		status amendsv1.RefundStatus
		row    string
	}{
		"closed":   {refundedWorld, statusFailed, "refund.failed_later"},
		"canceled": {refundedWorld, statusCanceled, "refund.failed_later"},
		"refunded, reply open": {func(t *testing.T) *world {
			w := requested(t)
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
			return w
		}, statusFailed, "refund.failed_later"},
		"with people": {func(t *testing.T) *world {
			w := refundedWorld(t)
			w.apply(w.finding("amount_differs", "req-8472"))
			w.is("HUMAN_HANDOFF")
			return w
		}, statusFailed, "refund.failed_later.noted"},
		"declined by a person after the refund": {func(t *testing.T) *world {
			w := refundedWorld(t)
			w.apply(w.finding("amount_differs", "req-8472"))
			w.apply(w.custody(take, "sam", true))
			w.apply(w.custody(declines, "sam", true))
			w.is("DECLINED")
			return w
		}, statusFailed, "refund.failed_later"},
		"about to be approved anew": {func(t *testing.T) *world {
			w := refundedWorld(t)
			w.apply(w.finding("amount_differs", "req-8472"))
			w.apply(w.custody(take, "sam", true))
			w.apply(w.custody(proposes, "sam", true))
			w.is("AWAITING_APPROVAL")
			return w
		}, statusFailed, "refund.failed_later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := c.walk(t)
			made := proto.CloneOf(casework.EffectAction(w.rec))
			w.told("refund.updated", "rf_5521")
			if !proto.Equal(w.asked().GetAction(), made) {
				t.Fatalf("asked about %v, made by %v", w.asked().GetAction(), made)
			}
			w.answer(confirms, w.readAgain(made, c.status))
			w.is("HUMAN_HANDOFF")
			if w.rows(c.row) != 1 || w.rec.GetEffect().GetRefunds()[0].GetOutcome().GetProviderStatus() != c.status {
				t.Errorf("%d of row %s, effect %v", w.rows(c.row), c.row, w.rec.GetEffect())
			}
			if q := strings.Join(casework.Packet(w.rec).GetOpenQuestions(), "\n"); !strings.Contains(q, "refund rf_5521 of ₹2,000.00 on pay_8472_b is ") {
				t.Errorf("the packet asks %s", q)
			}
			w.replays()
		})
	}
}

// One question is open at a time; what comes meanwhile makes the next, once.
func TestNewsDuringAConfirmation(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	w.told("refund.updated", "rf_5521")
	first := w.mustTask(confirms)
	for range 3 {
		w.told("refund.updated", "rf_5521")
	}
	w.told("refund.failed", "rf_5521")
	if same := w.mustTask(confirms); !proto.Equal(same.Payload, first.Payload) || !proto.Equal(same.Envelope, first.Envelope) {
		t.Error("the open question changed under way")
	}
	w.answer(confirms, w.readAgain(w.asked().GetAction(), statusSucceeded))
	if e := w.asked().GetEvents(); len(e) != 2 || w.mustTask(confirms).Envelope.GetMessageId() == first.Envelope.GetMessageId() {
		t.Fatalf("then asked about %v", e)
	}
	w.answer(confirms, w.readAgain(w.asked().GetAction(), statusSucceeded))
	if _, waits := casework.Next(w.rec); waits || len(w.rec.GetUnconfirmed()) != 0 {
		t.Errorf("still asks about %v", w.rec.GetUnconfirmed())
	}
	for i := range 40 { // more than a record holds
		w.told("refund.updated."+string(rune('a'+i%26)), "rf_5521")
	}
	w.answer(confirms, w.readAgain(w.asked().GetAction(), statusSucceeded))
	if n := len(w.asked().GetEvents()); n == 0 || n > 15 {
		t.Errorf("asked about %d", n)
	}
	w.replays()
}

// A late answer to an earlier question does not bring an older status back.
func TestOlderReadsAreLate(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	w.told("refund.updated", "rf_5521")
	old := w.mustTask(confirms)
	late := w.reply(old, w.readAgain(w.asked().GetAction(), amendsv1.RefundStatus_REFUND_STATUS_PENDING))
	w.due()
	w.answer(confirms, w.readAgain(w.asked().GetAction(), statusSucceeded))
	late.BrokerTime = timestamppb.New(w.now)
	w.apply(late)
	if got := w.refusedWith(); got != "lease_expired" || w.rec.GetEffect().GetRefunds()[0].GetOutcome().GetProviderStatus() != statusSucceeded {
		t.Errorf("refused with %q, effect %v", got, w.rec.GetEffect())
	}
}

// LIVE-1: a question that nobody answers, or not with an answer, ends with
// people, in a closed case too, and without a word to the customer.
func TestAConfirmationThatFailsForGood(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*world){
		"never answered": func(*world) {},
		"not readable":   func(w *world) { w.answer(confirms, w.effect(amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, nil)) },
		"nothing of it":  func(w *world) { w.answer(confirms, w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, nil)) },
		"fails": func(w *world) {
			w.answer(confirms, &amendsv1.TaskError{Reason: "deadline_passed", Retryable: true})
		},
	} {
		w := refundedWorld(t)
		began := w.now
		w.told("refund.failed", "rf_5521")
		for n := 0; w.rec.GetState() == amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED; n++ {
			if n > w.lim.Confirmations {
				t.Fatalf("%s: asked %d times", name, n)
			}
			answer(w)
			w.due()
		}
		w.is("HUMAN_HANDOFF")
		if c := w.rec.GetCustody(); c.GetReason() != "confirmation_failed" || c.GetQueue() != casework.QueueReconciliation || len(w.tasks()) != 0 || w.now.Sub(began).Hours() < 1 {
			t.Errorf("%s: custody %v with %d tasks after %s", name, c, len(w.tasks()), w.now.Sub(began))
		}
		if q := casework.Packet(w.rec).GetOpenQuestions(); !slices.Contains(q, "the provider reported refund.failed of rf_5521; not confirmed") {
			t.Errorf("%s: the packet asks %v", name, q)
		}
		w.replays()
		// Whoever looked into it ends it as quietly.
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(resolves, "sam", true))
		w.is("VERIFIED_CLOSED")
		if len(w.rec.GetReplies()) != 1 {
			t.Errorf("%s: %d replies", name, len(w.rec.GetReplies()))
		}
		w.replays()
	}
	w := refundedWorld(t)
	w.told("refund.failed", "rf_5521")
	w.answer(confirms, &amendsv1.TaskError{Reason: "slice_mismatch"}) // asking again is of no use
	w.is("HUMAN_HANDOFF")
}

// Only the very refunds of the case confirm it.
func TestAnotherRefundConfirmsNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*amendsv1.EffectResult){
		"another id":      func(e *amendsv1.EffectResult) { e.Refunds[0].Outcome.RefundId = "rf_1" },
		"another key":     func(e *amendsv1.EffectResult) { e.Refunds[0].IdempotencyKey += "x" },
		"another amount":  func(e *amendsv1.EffectResult) { e.Refunds[0].Amount.Minor++ },
		"another payment": func(e *amendsv1.EffectResult) { e.Refunds[0].PaymentId = "pay_8472_a" },
	} {
		w := refundedWorld(t)
		w.told("refund.updated", "rf_5521")
		e := w.readAgain(w.asked().GetAction(), statusFailed)
		change(e)
		w.answer(confirms, e)
		if w.lastRow() != "executor.not_known_yet" || w.rec.GetEffect().GetRefunds()[0].GetOutcome().GetProviderStatus() != amendsv1.RefundStatus_REFUND_STATUS_PENDING {
			t.Errorf("%s: row %s, effect %v", name, w.lastRow(), w.rec.GetEffect())
		}
	}
}

// However many events come, effects and the end with people get through, and
// the record stays within its bounds.
func TestAFloodOfNews(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	for i := range w.lim.Inputs + 100 {
		in := w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: []string{"refund.failed", "refund.updated"}[i%2], ObjectId: "rf_5521"}, nil)
		if c, err := casework.Decide(w.rec, in, w.lim); err == nil {
			w.log, w.rec = append(w.log, c), c.GetRecord()
		}
		if _, open := w.task(confirms); open && i%5 == 0 {
			w.answer(confirms, w.readAgain(w.asked().GetAction(), statusSucceeded))
		}
	}
	for range 30 {
		if _, waits := casework.Next(w.rec); !waits {
			break
		}
		w.due()
	}
	if _, waits := casework.Next(w.rec); waits || len(w.rec.GetHandled()) > 1024 {
		t.Errorf("%s waits %t with %d inputs", casework.StateName(w.rec.GetState()), waits, len(w.rec.GetHandled()))
	}
	w.replays()
}

// MONEY-3: of two refunds one was made, and said to have failed, before the other
// one was refused: the hint is asked about wherever the case goes.
func TestAHintBeforeARefusalIsAskedAbout(t *testing.T) {
	t.Parallel()
	const cancelSlice = amendsv1.Slice_SLICE_CANCEL
	part := func(w *world, class amendsv1.EffectClass) *amendsv1.EffectResult {
		e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, w.rec.GetAction())
		e.Class = class
		return e
	}
	for row, walk := range map[string]func(*world){
		"effect.refused": func(w *world) {
			w.answer(amendsv1.Slice_SLICE_EXECUTE, part(w, amendsv1.EffectClass_EFFECT_CLASS_REFUSED))
		},
		"effect.none.withdrawn": func(w *world) {
			w.cancel()
			w.answer(cancelSlice, part(w, amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT))
		},
		"effect.not_begun.person": func(w *world) {
			w.cancel()
			w.answer(cancelSlice, part(w, amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN))
		},
		"effect.refused.reconciling": func(w *world) {
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
			w.due()
			w.answer(amendsv1.Slice_SLICE_EXECUTE, part(w, amendsv1.EffectClass_EFFECT_CLASS_REFUSED))
		},
		"effect.reconcile.person": func(w *world) {
			w.answer(amendsv1.Slice_SLICE_EXECUTE, part(w, amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN))
			for w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
				w.due()
			}
		},
		"effect.late": func(w *world) {
			exec := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE)
			w.apply(w.custody(take, "sam", true)) // it may be the one in doubt
			w.apply(w.reply(exec, part(w, amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)))
		},
	} {
		w := requested(t)
		w.told("refund.failed", "rf_5521")
		walk(w)
		w.is("HUMAN_HANDOFF")
		if w.rows(row) != 1 {
			t.Errorf("%s: last %s", row, w.lastRow())
		}
		if e := w.asked().GetEvents(); len(e) != 1 || e[0].GetObjectId() != "rf_5521" || len(w.rec.GetFailedRefunds()) != 0 {
			t.Errorf("%s: asked about %v, kept %v", row, e, w.rec.GetFailedRefunds())
		}
	}
}
