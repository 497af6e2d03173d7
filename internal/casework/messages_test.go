package casework_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// message gives a message whose body is told by a digit.
func (w *world) message(digit int) casework.Input {
	in := w.input("gateway", &amendsv1.CustomerMessage{
		Channel: "web", Message: &amendsv1.UntrustedText{Text: "and?", Origin: amendsv1.TextOrigin_TEXT_ORIGIN_CUSTOMER},
		BodySha256: strings.Repeat(fmt.Sprint(digit%10), 64), PostedBy: "k",
	}, nil)
	in.Triage = supported()
	return in
}

// LOSS-1: whatever a case makes of a message, its next view says that it met
// it, and with which body.
func TestAViewKnowsTheMessagesLOSS1(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.settle()
	w.want("AWAITING_APPROVAL", 5)
	meets := func(digit int, opens, row string) {
		t.Helper()
		before, in := w.rec, w.message(digit)
		in.OpensCaseId = opens
		w.apply(in)
		v := casework.Delta(before, w.rec, w.lim).View
		if w.lastRow() != row || v == nil || v.GetVersion() != w.rec.GetVersion() || v.GetUpdatedAt().AsTime() != w.now {
			t.Fatalf("message %d: row %s, view %v", digit, w.lastRow(), v)
		}
		last := v.GetMessages()[len(v.GetMessages())-1]
		if last.GetMessageId() != in.GetEnvelope().GetMessageId() || last.GetBodySha256() != strings.Repeat(fmt.Sprint(digit), 64) || len(v.GetMessages()) != digit {
			t.Errorf("message %d: the view knows %v", digit, v.GetMessages())
		}
		if !casework.Met(w.rec, "gateway", in.GetEnvelope().GetMessageId(), in.Payload) || casework.Met(w.rec, "gateway", in.GetEnvelope().GetMessageId(), w.message(9).Payload) {
			t.Error("another body is taken for the one that was met")
		}
	}
	meets(1, "", "message.recorded")
	w.lim.Messages = 2
	meets(2, "", "input.refused")
	w.apply(w.decision(approve, "maya", "apr-8472-1", true))
	w.settle()
	if !casework.Closed(w.rec) {
		t.Fatal("the case is not closed")
	}
	meets(3, "req-8472-2", "message.after_close")
	meets(4, "", "input.refused") // linked cases spent
	w.replays()
}

func TestWhatAViewKnowsIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ledger8472(true))
	w.post(supported())
	w.lim.Messages, w.lim.Inputs, w.lim.InputReserve = 1, 900, 100
	for i := range 300 {
		w.apply(w.message(i))
	}
	got := casework.View(w.rec).GetMessages()
	if len(got) != 256 || got[255].GetBodySha256() != strings.Repeat("9", 64) {
		t.Errorf("%d messages, the last is %v", len(got), got[len(got)-1])
	}
}
