package orchestrator

import (
	"sync"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// heldCase is what is kept of a case whose effect the emergency stop holds.
type heldCase struct {
	tenant, id, request, customer, trace string
	version                              uint64
	// tries counts the releases' failed attempts to tell it.
	tries int
}

// held remembers the cases whose effect the stop holds, as far as this process
// committed or swept them: every replica knows its own, and after a start all
// commits are walked. One that has moved on elsewhere may still be in it.
type held struct {
	mu    sync.Mutex
	cases map[string]heldCase
}

func newHeld() *held { return &held{cases: map[string]heldCase{}} }

func (h *held) note(rec *amendsv1.CaseRecord) {
	holds := casework.Held(rec)
	key := rec.GetTenant() + "." + rec.GetCaseId()
	h.mu.Lock()
	defer h.mu.Unlock()
	have, known := h.cases[key]
	switch {
	case known && have.version > rec.GetVersion():
	case holds && have.version != rec.GetVersion():
		h.cases[key] = heldCase{
			tenant: rec.GetTenant(), id: rec.GetCaseId(), request: rec.GetRequestId(), customer: rec.GetCustomerId(), trace: rec.GetTraceId(),
			version: rec.GetVersion(),
		}
	case !holds:
		delete(h.cases, key)
	}
}

func (h *held) list() []heldCase {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]heldCase, 0, len(h.cases))
	for _, c := range h.cases {
		out = append(out, c)
	}
	return out
}

// told lets a case go that was told of a release, or could not be in the tries
// it has; unless it has been held anew since.
func (h *held) told(c heldCase, err error) {
	key := c.tenant + "." + c.id
	h.mu.Lock()
	defer h.mu.Unlock()
	have, known := h.cases[key]
	if !known || have.version != c.version {
		return
	}
	if have.tries++; err == nil || have.tries >= maxTellTries {
		delete(h.cases, key)
		return
	}
	h.cases[key] = have
}
