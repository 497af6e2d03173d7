package bus

import (
	"slices"
	"sync"
	"time"
)

const (
	// One case may hold this part of a consumer's MaxAckPending in delayed
	// retries; more would let it stall every other case.
	heldShare = 8
	// heldSweep is how many entries are looked through at once for cases
	// whose retries are all out again.
	heldSweep = 1024
)

// held counts, per case, the retries that wait at the broker.
type held struct {
	limit int

	mu    sync.Mutex
	cases map[string][]time.Time // when each comes back
	next  int                    // size at which to sweep
}

func newHeld(maxAckPending int) *held {
	return &held{limit: max(1, maxAckPending/heldShare), cases: make(map[string][]time.Time), next: heldSweep}
}

// take notes a retry that comes back at until, or says that the case already
// holds its share.
func (h *held) take(key string, now, until time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.cases) >= h.next {
		for k := range h.cases {
			h.expire(k, now)
		}
		h.next = max(heldSweep, 2*len(h.cases))
	}
	waiting := h.expire(key, now)
	if len(waiting) >= h.limit {
		return false
	}
	h.cases[key] = append(waiting, until)
	return true
}

func (h *held) expire(key string, now time.Time) []time.Time {
	left := slices.DeleteFunc(h.cases[key], func(t time.Time) bool { return !t.After(now) })
	if len(left) == 0 {
		delete(h.cases, key)
		return nil
	}
	h.cases[key] = left
	return left
}
