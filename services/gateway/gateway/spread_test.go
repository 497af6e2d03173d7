package gateway

import (
	"net/http"
	"strconv"
	"testing"
)

func TestSpreadEventsAreBoundedAndLapse(t *testing.T) {
	t.Parallel()
	s, at := newSpreadEvents(), openedAt
	for i := range eventsKept + 10 {
		s.add(strconv.Itoa(i), at)
	}
	s.add("10", at)
	if len(s.until) != eventsKept || len(s.order) != eventsKept || s.has("9", at) || !s.has("10", at) {
		t.Errorf("%d and %d are kept", len(s.until), len(s.order))
	}
	if at = at.Add(eventKept); s.has("10", at) {
		t.Error("an event did not lapse")
	}
	if s.add("10", at); len(s.until) != 1 || len(s.order) != 1 || !s.has("10", at) {
		t.Errorf("%d and %d are kept after they lapsed", len(s.until), len(s.order))
	}
}

// B74: a captured event that is sent again and again is stored once, also when
// the provider signs it anew. One that is not yet at all of its cases is stored.
func TestReplayedEventsAreStoredOnceB74(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := d.gatewayWith(t, takesEvents(t))
	d.orderView(t, "req-1", "8472", "HOLD_FOR_EVIDENCE")
	d.untilListed(t, base, 1)
	body := eventBody("capture.settled", "8472", "pay_8472_b", "")
	captured := signed(t, "evt_1", body)
	for i := range 60 {
		h := captured.Clone()
		if i%20 == 19 {
			h = signed(t, "evt_1", body)
		}
		if got := tell(t, base, h, body); got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if n := len(d.events(t)["req-1"]); n != 1 {
		t.Errorf("stored %d times", n)
	}
	if tell(t, base, signed(t, "evt_2", body), body); len(d.events(t)["req-1"]) != 2 {
		t.Error("another event is not stored")
	}
	// No case yet: nothing is stored, nothing is remembered.
	body = eventBody("capture.settled", "9000", "pay_9000", "")
	if got := tell(t, base, signed(t, "evt_3", body), body); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	d.orderView(t, "req-2", "9000", "HOLD_FOR_EVIDENCE")
	d.untilListed(t, base, 2)
	if tell(t, base, signed(t, "evt_3", body), body); len(d.events(t)["req-2"]) != 1 {
		t.Error("an event that had no case did not reach the one it has")
	}
}
