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

// inDoubt is an answer by which nobody knows whether the refunds of an action
// were made.
func (w *world) inDoubt(a *amendsv1.ActionRecord) *amendsv1.EffectResult {
	e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, a)
	e.Class, e.Reason = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN, "timeout"
	for _, r := range e.GetRefunds() {
		r.Outcome = &amendsv1.EffectOutcome{Class: e.GetClass(), Reason: "timeout", At: timestamppb.New(w.now)}
	}
	return e
}

// MONEY-3, TRUTH-1: a withdrawal to which the executor says that nobody knows
// leaves the outcome in doubt: people cannot decide the case as if nothing had
// been refunded.
func TestAWithdrawalInDoubtIsADoubt(t *testing.T) {
	t.Parallel()
	w := requested(t)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT) // and it is asked again later
	w.cancelAs("cust_5519")
	for n := 0; w.rec.GetState() == amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED; n++ {
		if n > 200 {
			t.Fatal("it is asked for ever")
		}
		if _, ok := w.task(amendsv1.Slice_SLICE_CANCEL); ok { // an earlier delivery had begun, and its call has no answer
			w.answer(amendsv1.Slice_SLICE_CANCEL, w.inDoubt(w.rec.GetAction()))
			if !w.rec.GetOutcomeUnknown() {
				t.Fatal("the outcome counts as known")
			}
		}
		w.due()
	}
	w.apply(w.custody(take, "sam", true))
	for _, step := range []amendsv1.CustodyStep{declines, closes, asks, proposes} {
		w.apply(w.custody(step, "sam", true))
		if got := w.refusedWith(); got != "outcome_unknown" {
			t.Errorf("%s: refused with %q", step, got)
		}
	}
	w.apply(w.custody(settles, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")
}

// MONEY-3: an acknowledgement that comes when people have moved the case
// elsewhere is recorded and brings it back to them, without a word to the
// customer; they cannot end it as quietly.
func TestAnAcknowledgementAfterAll(t *testing.T) {
	t.Parallel()
	const quiet = "HUMAN_HANDOFF"
	decide := func(steps ...amendsv1.CustodyStep) func(*world) {
		return func(w *world) {
			w.due()
			w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_REFUSED)
			w.apply(w.custody(take, "sam", true))
			for _, s := range steps {
				w.apply(w.custody(s, "sam", true))
			}
		}
	}
	for name, walk := range map[string]func(*world){
		"DECLINED":          decide(declines),
		"AWAITING_CUSTOMER": decide(asks),
		"INVESTIGATING":     decide(investigate),
		"AWAITING_APPROVAL": decide(proposes),
		"VERIFIED_CLOSED": func(w *world) {
			decide(declines)(w)
			w.settle()
		},
		"CANCELLED": func(w *world) {
			w.cancel()
			w.answer(amendsv1.Slice_SLICE_CANCEL, w.effect(amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN, nil))
		},
		"CANCELLED, told so": func(w *world) {
			w.cancel()
			w.answer(amendsv1.Slice_SLICE_CANCEL, w.effect(amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN, nil))
			w.settle()
		},
	} {
		for what, doubt := range map[string]bool{"made": false, "in doubt": true} {
			w := requested(t)
			first := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
			a := proto.CloneOf(w.rec.GetAction())
			e := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, a)
			if doubt {
				e = w.inDoubt(a)
			}
			walk(w)
			w.is(strings.Split(name, ",")[0])
			replies := len(w.rec.GetReplies())
			w.apply(w.reply(first, e))
			w.is(quiet)
			if c := w.rec.GetCustody(); c.GetQueue() != casework.QueueReconciliation || c.GetReason() != "refund_after_all" || len(w.tasks()) != 0 || len(w.rec.GetReplies()) != replies {
				t.Errorf("%s, %s: custody %v, tasks %d", name, what, c, len(w.tasks()))
			}
			p := casework.Packet(w.rec)
			shown := slices.ContainsFunc(p.GetCompletedActions(), func(s string) bool { return strings.HasPrefix(s, "refund rf_5521 of ₹2,000.00") })
			asked := slices.ContainsFunc(p.GetOpenQuestions(), func(s string) bool { return strings.Contains(s, "of ₹2,000.00 on pay_8472_b") })
			if shown == doubt || asked != doubt {
				t.Errorf("%s, %s: the packet shows %q and asks %q", name, what, p.GetCompletedActions(), p.GetOpenQuestions())
			}
			again := w.reply(first, e)
			again.Envelope.MessageId = w.input("gateway", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"}, nil).Envelope.GetMessageId()
			w.apply(again)
			w.is(quiet)
			w.apply(w.custody(take, "sam", true))
			w.apply(w.custody(resolves, "sam", true))
			if got := w.refusedWith(); got != "customer_waits" && got != "outcome_unknown" {
				t.Errorf("%s, %s: resolving is refused with %q", name, what, got)
			}
		}
	}
}

// A refund of an action that another has the place of is recorded beside it, and
// does not stand for that one (TRUTH-2).
func TestAnAcknowledgementOfAnEarlierAction(t *testing.T) {
	t.Parallel()
	w := requested(t)
	first := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	made := w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, w.rec.GetAction())
	w.due()
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_REFUSED)
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(proposes, "sam", true))
	w.apply(w.decision(approve, "maya", "apr-8472-2", true))
	w.is("REFUND_REQUESTED")
	w.apply(w.reply(first, made))
	w.is("REFUND_REQUESTED")
	if w.lastRow() != "effect.after_all.noted" || len(casework.Made(w.rec)) != 1 {
		t.Fatalf("row %s, made %v", w.lastRow(), casework.Made(w.rec))
	}
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_REFUSED)
	w.is("HUMAN_HANDOFF")
	if made := casework.Made(w.rec); len(made) != 1 || made[0].GetOutcome().GetRefundId() != "rf_5521" {
		t.Errorf("made %v", made)
	}
	foreign := proto.CloneOf(made)
	foreign.ActionSha256 = strings.Repeat("0", 64)
	w.apply(w.reply(first, foreign))
	if got := w.refusedWith(); got != "action_mismatch" {
		t.Errorf("an action that was never the case's: refused with %q", got)
	}
}
