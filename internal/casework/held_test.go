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
