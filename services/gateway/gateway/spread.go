package gateway

import (
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/webhook"
)

const (
	// eventsKept bounds the events a process remembers; the oldest is forgotten.
	eventsKept = 1 << 14
	// eventKept is how long one signed webhook can come again: its timestamp may
	// be off by the tolerance either way.
	eventKept = 2 * webhook.Tolerance
)

// spreadEvents remembers which events are at all of their cases, so that
// whoever captured one cannot fill INTAKE with it. It is a saving and no more:
// what is forgotten is stored again, and recorded once.
type spreadEvents struct {
	mu    sync.Mutex
	until map[string]time.Time
	order []string // as they were added, so as they lapse
}

func newSpreadEvents() *spreadEvents { return &spreadEvents{until: map[string]time.Time{}} }

// has reports an event that was added not long ago.
func (s *spreadEvents) has(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until[id])
}

func (s *spreadEvents) add(id string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.order) > 0 && (len(s.order) >= eventsKept || !now.Before(s.until[s.order[0]])) {
		delete(s.until, s.order[0])
		s.order = s.order[1:]
	}
	if _, known := s.until[id]; !known { // two at once
		s.until[id] = now.Add(eventKept)
		s.order = append(s.order, id)
	}
}
