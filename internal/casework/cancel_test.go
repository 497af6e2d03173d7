package casework_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Withdrawing before, while and after the effect: the executor's answer decides,
// and the reply says what is so (TRUTH-1).
func TestCancellationEndsHonestly(t *testing.T) {
	t.Parallel()
	const (
		cancelSlice  = amendsv1.Slice_SLICE_CANCEL
		executeSlice = amendsv1.Slice_SLICE_EXECUTE

		acknowledged = amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED
		noEffect     = amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT
		held         = amendsv1.EffectClass_EFFECT_CLASS_HELD
		unknown      = amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN
		undecidable  = amendsv1.EffectClass_EFFECT_CLASS_UNDECIDABLE
		refused      = amendsv1.EffectClass_EFFECT_CLASS_REFUSED
		notBegun     = amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN
	)
	says := func(w *world, slice amendsv1.Slice, class amendsv1.EffectClass) {
		t.Helper()
		w.answer(slice, w.effect(class, w.rec.GetAction()))
	}
	const told, nothing = amendsv1.ReplyKind_REPLY_KIND_REFUNDED, amendsv1.ReplyKind_REPLY_KIND_CANCELLED
	for name, c := range map[string]struct {
		walk  func(*world)
		state string
		reply amendsv1.ReplyKind
	}{
		"not begun":                 {func(w *world) { w.cancel(); says(w, cancelSlice, notBegun) }, "CANCELLED", nothing},
		"made meanwhile":            {func(w *world) { w.cancel(); says(w, executeSlice, acknowledged) }, "VERIFIED_CLOSED", told},
		"made, says the withdrawal": {func(w *world) { w.cancel(); says(w, cancelSlice, acknowledged) }, "VERIFIED_CLOSED", told},
		"made before":               {func(w *world) { w.executorSays(acknowledged); w.cancel() }, "VERIFIED_CLOSED", told},
		"refused meanwhile":         {func(w *world) { w.cancel(); says(w, executeSlice, refused) }, "HUMAN_HANDOFF", amendsv1.ReplyKind_REPLY_KIND_HANDOFF},
		"held, then withdrawn":      {func(w *world) { w.executorSays(held); w.cancel(); says(w, cancelSlice, notBegun) }, "CANCELLED", nothing},
		"withdrawn, then held":      {func(w *world) { w.cancel(); says(w, executeSlice, held); says(w, cancelSlice, notBegun) }, "CANCELLED", nothing},
		"held, the stop is lifted": {func(w *world) {
			w.cancel()
			says(w, executeSlice, held)
			says(w, cancelSlice, acknowledged)
		}, "VERIFIED_CLOSED", told},
		"nothing done, then withdrawn": {func(w *world) {
			w.cancel()
			says(w, executeSlice, noEffect)
			says(w, cancelSlice, notBegun)
		}, "CANCELLED", nothing},
		"made in part": {func(w *world) {
			w.executorSays(noEffect)
			w.cancel()
			says(w, cancelSlice, noEffect)
		}, "HUMAN_HANDOFF", amendsv1.ReplyKind_REPLY_KIND_HANDOFF},
		"unknown, then made": {func(w *world) {
			w.cancel()
			says(w, executeSlice, unknown)
			says(w, cancelSlice, unknown)
			w.due()
			says(w, executeSlice, acknowledged)
		}, "VERIFIED_CLOSED", told},
		"undecidable, then found": {func(w *world) {
			w.cancel()
			says(w, cancelSlice, undecidable)
			w.is("RECONCILING")
			w.due()
			says(w, executeSlice, acknowledged)
		}, "VERIFIED_CLOSED", told},
		"undecidable, then absent": {func(w *world) {
			w.cancel()
			says(w, cancelSlice, undecidable)
			w.due()
			says(w, executeSlice, noEffect)
			says(w, cancelSlice, notBegun)
		}, "CANCELLED", nothing},
		"undecidable, a person settles": {func(w *world) {
			w.cancel()
			says(w, cancelSlice, undecidable)
			w.apply(w.custody(take, "sam", true))
			w.apply(w.custody(settles, "sam", true))
		}, "VERIFIED_CLOSED", told},
		"undecidable, a person finds none": {func(w *world) {
			w.cancel()
			says(w, cancelSlice, undecidable)
			w.apply(w.custody(take, "sam", true))
			w.apply(w.custody(settles, "sam", true, noSuchRefund))
		}, "HUMAN_HANDOFF", amendsv1.ReplyKind_REPLY_KIND_HANDOFF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := requested(t)
			c.walk(w)
			w.settle()
			w.is(c.state)
			replies := w.rec.GetReplies()
			if len(replies) == 0 || replies[len(replies)-1].GetKind() != c.reply {
				t.Fatalf("told %v, want last %s", replies, c.reply)
			}
			for _, r := range replies[:len(replies)-1] {
				if r.GetKind() == nothing || r.GetKind() == told {
					t.Errorf("TRUTH-1: also told %s", r.GetKind())
				}
			}
		})
	}
}

// TRUTH-1: what an earlier action refunded is not denied when a later one is
// withdrawn before it began.
func TestWithdrawalOfASecondAction(t *testing.T) {
	t.Parallel()
	w := refundedWorld(t)
	made := proto.CloneOf(w.rec.GetAction())
	w.apply(w.finding("amount_differs", "req-8472"))
	w.apply(w.custody(take, "sam", true))
	w.apply(w.custody(proposes, "sam", true))
	w.apply(w.decision(approve, "maya", "apr-8472-2", true))
	w.is("REFUND_REQUESTED")
	if !proto.Equal(casework.EffectAction(w.rec), made) {
		t.Fatalf("the effect is of %v", casework.EffectAction(w.rec))
	}
	w.cancel()
	w.answer(amendsv1.Slice_SLICE_CANCEL, w.effect(amendsv1.EffectClass_EFFECT_CLASS_NOT_BEGUN, nil))
	w.settle()
	w.is("HUMAN_HANDOFF")
	for _, r := range w.rec.GetReplies() {
		if r.GetKind() == amendsv1.ReplyKind_REPLY_KIND_CANCELLED {
			t.Error("TRUTH-1: told that nothing was refunded")
		}
	}
}
