package casework_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func (w *world) lifted() casework.Input {
	w.tb.Helper()
	return w.input("orchestrator", &amendsv1.StopLifted{Released: &amendsv1.StopSwitch{Scope: "acme-in", By: "sam", Reason: "over", At: timestamppb.New(w.now)}}, nil)
}

// A case whose effect the stop holds is asked for again at once when it is
// lifted, with the same key; one that is not held has nothing to do (LIVE-1).
func TestStopLifted(t *testing.T) {
	t.Parallel()
	w := requested(t)
	nothing := func() {
		t.Helper()
		if c, err := casework.Decide(w.rec, w.lifted(), w.lim); !errors.Is(err, casework.ErrNothingDue) || casework.Held(w.rec) {
			t.Fatalf("%s: %v, %v", w.lastRow(), c, err)
		}
	}
	nothing()
	first := w.mustTask(amendsv1.Slice_SLICE_EXECUTE).Payload.GetExecute().GetAction().GetRefunds()[0].GetIdempotencyKey()
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_HELD)
	if !casework.Held(w.rec) {
		t.Fatal("it is not held")
	}
	for what, change := range map[string]func(*amendsv1.StopSwitch){
		"another tenant's": func(s *amendsv1.StopSwitch) { s.Scope = "other" },
		"one that is set":  func(s *amendsv1.StopSwitch) { s.Stopped = true },
	} {
		in := w.lifted()
		change(in.Payload.(*amendsv1.StopLifted).GetReleased())
		if _, err := casework.Decide(w.rec, in, w.lim); !errors.Is(err, casework.ErrNothingDue) {
			t.Fatalf("TENANT-1: %s switch: %v", what, err)
		}
	}
	w.apply(w.lifted())
	again := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	if w.lastRow() != "effect.stop_lifted" || casework.Held(w.rec) || again.Payload.GetExecute().GetAction().GetRefunds()[0].GetIdempotencyKey() != first {
		t.Fatalf("%s: %v", w.lastRow(), again)
	}
	if wait := again.Envelope.GetDeadline().AsTime().Sub(w.now); wait > time.Minute {
		t.Errorf("its answer is due in %s", wait)
	}
	nothing()
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
	nothing()
	w.is("REFUNDED")
}

// However long the stop lasts, the case keeps its place and uses nothing up: it
// asks by itself at growing distances, each time in the place of the attempt that
// was held, and goes on when the stop is over (LIVE-1).
func TestAStopOfAnyLengthUsesNothingUp(t *testing.T) {
	t.Parallel()
	const (
		held = amendsv1.EffectClass_EFFECT_CLASS_HELD
		day  = 24 * time.Hour
	)
	for name, at := range map[string]struct {
		begin func(*world)
		state string
	}{
		"REFUND_REQUESTED": {func(*world) {}, "REFUND_REQUESTED"},
		"RECONCILING":      {func(w *world) { w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE) }, "RECONCILING"},
	} {
		w := requested(t)
		at.begin(w)
		doubt, approvals := w.rec.GetOutcomeUnknown(), len(w.rec.GetApprovals())
		began, before := w.now, w.rec
		for w.now.Sub(began) < 2*365*day {
			asked := w.now
			w.executorSays(held)
			if n := len(w.rec.GetTimeline()); n > 250 {
				t.Fatalf("%s: %d versions after %s", name, n, w.now.Sub(began))
			}
			next, _ := casework.Next(w.rec)
			if wait, most := next.Sub(w.now), max(time.Hour, w.now.Sub(began)/8); wait < 5*time.Minute || wait > most {
				t.Fatalf("%s: asked at %s, again after %s", name, asked, wait)
			}
		}
		w.is(at.state)
		for i, n := range w.rec.GetTasks() {
			if more := len(n.GetAttempts()) - len(before.GetTasks()[i].GetAttempts()); more > 1 {
				t.Errorf("%s: task %s has %d attempts more", name, n.GetTaskId(), more)
			}
		}
		if !casework.Held(w.rec) || w.rec.GetOutcomeUnknown() != doubt || len(w.rec.GetApprovals()) != approvals || w.rec.GetConsumption().GetDelegations() != before.GetConsumption().GetDelegations() {
			t.Errorf("%s: unknown %t, %v", name, w.rec.GetOutcomeUnknown(), w.rec.GetConsumption())
		}
		w.apply(w.lifted())
		w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED)
		w.settle()
		w.is("VERIFIED_CLOSED")
	}
}

// An answer to an attempt whose place another one took counts, and proves nothing
// about that one.
func TestAnswersToAnAttemptThatWasHeld(t *testing.T) {
	t.Parallel()
	w := requested(t)
	first := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	w.executorSays(amendsv1.EffectClass_EFFECT_CLASS_HELD)
	w.apply(w.lifted())
	second := w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	if first.Envelope.GetMessageId() == second.Envelope.GetMessageId() || first.Envelope.GetAttempt() != second.Envelope.GetAttempt() {
		t.Fatalf("asked %v, then %v", first.Envelope, second.Envelope)
	}
	w.apply(w.reply(first, w.effect(amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, nil)))
	if got := w.refusedWith(); got != "not_expected_in_REFUND_REQUESTED" {
		t.Errorf("row %s, refused with %q", w.lastRow(), got)
	}
	w.mustTask(amendsv1.Slice_SLICE_EXECUTE)
	made := w.reply(first, w.effect(amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, w.rec.GetAction()))
	made.Envelope.MessageId = w.lifted().Envelope.GetMessageId()
	w.apply(made)
	w.is("REFUNDED")
}

// LIVE-1: people end a case whose effect was never begun: the executor says so to
// a custodian's signed answer, with what it has of the refunds or without.
func TestPeopleEndWhatWasNeverBegun(t *testing.T) {
	t.Parallel()
	for name, refunds := range map[string]func(*amendsv1.EffectResult){
		"nothing is said of the refunds": func(e *amendsv1.EffectResult) { e.Refunds = nil },
		"they are withdrawn": func(e *amendsv1.EffectResult) {
			e.Refunds[0].Outcome.Class, e.Refunds[0].Outcome.Reason = amendsv1.EffectClass_EFFECT_CLASS_REFUSED, "settled_absent"
		},
	} {
		w := doubtful(t) // the executor never answered
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(declines, "sam", true))
		if got := w.refusedWith(); got != "outcome_unknown" {
			t.Fatalf("declining is refused with %q", got)
		}
		w.apply(w.custody(settles, "sam", true, noSuchRefund))
		w.is("RECONCILING")
		e := w.settlement(w.mustTask(settle).Payload.GetSettle())
		refunds(e)
		w.answer(settle, e)
		w.is("HUMAN_HANDOFF")
		if w.rec.GetOutcomeUnknown() || w.rec.GetCustody().GetReason() != "settled_absent" {
			t.Fatalf("%s: unknown %t, custody %v", name, w.rec.GetOutcomeUnknown(), w.rec.GetCustody())
		}
		w.settle()
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(declines, "sam", true))
		w.settle()
		w.is("VERIFIED_CLOSED")
	}
}
