package bus

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// health keeps what does not get on, by name, and why.
type health struct {
	mu   sync.Mutex
	sick map[string]error
}

func (h *health) set(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sick == nil {
		h.sick = make(map[string]error)
	}
	h.sick[name] = err
}

func (h *health) clear(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sick, name)
}

func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.sick)) {
		return fmt.Errorf("bus: consumer %s: %w", name, h.sick[name])
	}
	return nil
}
