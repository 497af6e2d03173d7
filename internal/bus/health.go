package bus

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// health keeps why consumers do not get on; nobody in it is well.
type health struct {
	mu   sync.Mutex
	sick map[string]error
}

func (h *health) set(consumer string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sick == nil {
		h.sick = make(map[string]error)
	}
	h.sick[consumer] = err
}

func (h *health) clear(consumer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sick, consumer)
}

func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.sick)) {
		return fmt.Errorf("bus: consumer %s: %w", name, h.sick[name])
	}
	return nil
}
