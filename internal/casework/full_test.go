package casework_test

import (
	"errors"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// LIVE-1: a case that was flooded with news of its own refund is with people, and
// they can do something with it.
func TestAFloodedCaseCanBeDecided(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	flooded := false
	for range 3 * w.lim.Inputs {
		in := w.input("gateway", &amendsv1.ProviderEvent{OrderId: "8472", Kind: "refund.failed", ObjectId: "rf_5521"}, nil)
		c, err := casework.Decide(w.rec, in, w.lim)
		if errors.Is(err, casework.ErrFull) {
			flooded = true
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		w.log, w.rec = append(w.log, c), c.GetRecord()
	}
	if n := len(w.rec.GetHandled()); !flooded || n > w.lim.Inputs-w.lim.InputReserve {
		t.Errorf("the news went on until %d inputs, full %t", n, flooded)
	}
	w.answer(confirms, w.readAgain(w.asked().GetAction(), statusFailed))
	w.is("HUMAN_HANDOFF")
	w.settle()
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(closes, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")
}

// LIVE-1: a record that is full takes the decisions of people, what their
// signatures are good for, and the work that a decision brings; nothing else.
func TestAFullRecordIsDecidedByPeople(t *testing.T) {
	t.Parallel()
	w := disputed(t)
	w.lim.Inputs, w.lim.InputReserve = 30, 15
	for len(w.rec.GetHandled()) < w.lim.Inputs {
		w.apply(w.custody(take, "sam", true))
		w.apply(w.custody(release, "sam", true))
	}
	junk := func() []casework.Input {
		return []casework.Input{
			w.custody(take, "lee", false),
			w.input("gateway", &amendsv1.CaseCancel{Channel: "web", PostedBy: "k"}, nil),
			w.input("composer", &amendsv1.TaskError{Reason: "junk"}, nil),
		}
	}
	for _, in := range junk() {
		if _, err := casework.Decide(w.rec, in, w.lim); !errors.Is(err, casework.ErrFull) {
			t.Errorf("%T: %v", in.Payload, err)
		}
	}
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(take, "lee", true)) // and they are told why not
	if got := w.refusedWith(); got != "in_custody_of_another" {
		t.Errorf("refused with %q", got)
	}
	w.apply(w.custody(investigate, "sam", true))
	w.settle()
	w.is("HUMAN_HANDOFF") // the dispute is still there
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(declines, "sam", true))
	w.settle()
	w.is("VERIFIED_CLOSED")

	// What is kept for people has an end as well, and so has what they set going.
	w = disputed(t)
	w.lim.Inputs, w.lim.InputReserve = 30, 15
	n := 0
	for ; n < 300; n++ {
		if _, err := casework.Decide(w.rec, w.custody(take, "sam", true), w.lim); err != nil {
			break
		}
		w.apply(w.custody(take, "sam", true))
	}
	if n >= 300 || len(w.rec.GetHandled()) > 200 {
		t.Errorf("%d inputs", len(w.rec.GetHandled()))
	}
	w = disputed(t)
	w.lim.Inputs, w.lim.InputReserve = 30, 15
	for len(w.rec.GetHandled()) < w.lim.Inputs {
		w.apply(w.custody(take, "sam", true))
	}
	w.apply(w.custody(investigate, "sam", true))
	for n = 0; w.rec.GetState() != amendsv1.CaseState_CASE_STATE_HUMAN_HANDOFF; n++ {
		if n > 60 {
			t.Fatal("it works for ever")
		}
		w.due()
	}
}
