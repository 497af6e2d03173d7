package casework_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// refused applies an input and checks that it was recorded, refused for a
// reason, and moved nothing.
func (w *world) refused(in casework.Input, reason string) {
	w.tb.Helper()
	state := w.rec.GetState()
	w.apply(in)
	h := w.rec.GetHandled()
	if got := h[len(h)-1].GetRefused(); got != reason || w.rec.GetState() != state {
		w.tb.Fatalf("refused as %q, want %q; %s after %s", got, reason, casework.StateName(w.rec.GetState()), casework.StateName(state))
	}
	w.replays()
}

// approved brings a case to where its refund is asked for.
func approved(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.settle()
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	w.want("REFUND_REQUESTED", 6)
	return w
}

// A refund exists when the provider has named it, and as what was approved;
// anything else that calls itself an acknowledgement is for a person (TRUTH-2).
func TestAnAcknowledgementThatProvesNoRefundTRUTH2(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*amendsv1.RefundResult){
		"no refund id":     func(r *amendsv1.RefundResult) { r.Outcome.RefundId = "" },
		"another key":      func(r *amendsv1.RefundResult) { r.IdempotencyKey = "refund:req-8472:pay_8472_a" },
		"another payment":  func(r *amendsv1.RefundResult) { r.PaymentId = "pay_8472_a" },
		"another amount":   func(r *amendsv1.RefundResult) { r.Amount.Minor-- },
		"another currency": func(r *amendsv1.RefundResult) { r.Amount.Currency = "JPY" },
		"not acknowledged": func(r *amendsv1.RefundResult) { r.Outcome.Class = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN },
		"failed at once": func(r *amendsv1.RefundResult) {
			r.Outcome.ProviderStatus = amendsv1.RefundStatus_REFUND_STATUS_FAILED
		},
		"read back failed": func(r *amendsv1.RefundResult) {
			r.ReadBack = &amendsv1.Refund{
				RefundId: r.GetOutcome().GetRefundId(), PaymentId: r.GetPaymentId(), Amount: r.GetAmount(),
				Status: amendsv1.RefundStatus_REFUND_STATUS_FAILED, Reference: r.GetIdempotencyKey(),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := approved(t)
			task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
			e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
			r := e.GetRefunds()[0]
			r.Amount = &amendsv1.Money{Minor: r.GetAmount().GetMinor(), Currency: r.GetAmount().GetCurrency()}
			spoil(r)
			w.apply(w.reply(task, e))
			if row := w.rec.GetTimeline()[6].GetRow(); row != "effect.differs" || w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF {
				t.Errorf("%s by %s", casework.StateName(w.rec.GetState()), row)
			}
			w.replays()
		})
	}
}

// What the executor says of another action says nothing of this one.
func TestTheEffectOfAnotherActionDoesNotCount(t *testing.T) {
	t.Parallel()
	w := approved(t)
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, task.Payload.GetExecute().GetAction())
	e.ActionSha256 = strings.Repeat("0", 64)
	w.refused(w.reply(task, e), "action_mismatch")
}

// An answer that the broker stored at its deadline or after it is late also
// while the attempt still stands, before its timer has come.
func TestAnAnswerAfterItsDeadlineIsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	pay := w.mustTask(amendsv1.Slice_SLICE_PAYMENT)
	w.now = pay.Envelope.GetDeadline().AsTime()
	if next, ok := casework.Next(w.rec); !ok || !w.now.Before(next) {
		t.Fatalf("the attempt's timer is due at %s: the test shows nothing", next)
	}
	w.refused(w.reply(pay, w.work(pay)), "lease_expired")
}

// A verification is of the draft the record holds, a draft of the facts it
// holds: what was derived from something else is stale, however well it reads.
func TestDerivedResultsAreOfWhatTheRecordHolds(t *testing.T) {
	t.Parallel()
	w := approved(t)
	task := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	w.apply(w.reply(task, w.work(task)))

	compose := w.mustTask(amendsv1.Slice_SLICE_COMPOSE)
	draft, _ := w.work(compose).(*amendsv1.Draft)
	draft.FactsSha256 = strings.Repeat("0", 64)
	w.refused(w.reply(compose, draft), "stale_facts")
	in := w.reply(compose, w.work(compose))
	in.Envelope.MessageId = "0197f000-0000-7000-8000-000000000001"
	w.apply(in)

	verify := w.mustTask(amendsv1.Slice_SLICE_VERIFY)
	verdict, _ := w.work(verify).(*amendsv1.Verification)
	verdict.DraftSha256 = strings.Repeat("0", 64)
	w.refused(w.reply(verify, verdict), "stale_draft")
}

// An input is known by its sender and its id: nobody can have another's input
// taken for handled by using its id first (LOSS-1).
func TestAnIDOfAnotherSenderHidesNothingLOSS1(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	pay := w.mustTask(amendsv1.Slice_SLICE_PAYMENT)
	good := w.reply(pay, w.work(pay))

	taken := w.input("gateway", &amendsv1.CustomerMessage{
		Channel: "web", Message: &amendsv1.UntrustedText{Text: "hello", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER},
		BodySha256: strings.Repeat("0", 64), PostedBy: "web-key",
	}, func(e *amendsv1.Envelope) { e.MessageId = good.GetEnvelope().GetMessageId() })
	taken.Triage = supported()
	w.apply(taken)
	if _, err := casework.Decide(w.rec, taken, w.lim); !errors.Is(err, casework.ErrHandled) {
		t.Fatalf("the message again: %v", err)
	}
	w.apply(good)
	if w.rec.GetPayment() == nil {
		t.Error("the evidence was taken for a message that is handled")
	}
	w.replays()
}
