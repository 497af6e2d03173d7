package boot

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
)

// Readiness collects the checks that decide whether a service should be sent
// work. The zero value is usable and not ready: a service without a registered
// check is still starting.
type Readiness struct {
	mu      sync.Mutex
	checks  map[string]func() error
	closing bool
}

// Add registers a check; nil means ready. It must answer at once, from what it
// already knows. Adding a name again replaces the check.
func (r *Readiness) Add(name string, check func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checks == nil {
		r.checks = map[string]func() error{}
	}
	r.checks[name] = check
}

// Reasons gives why the service is not ready, by check; none when it is.
func (r *Readiness) Reasons() map[string]string {
	r.mu.Lock()
	checks, closing := maps.Clone(r.checks), r.closing
	r.mu.Unlock()
	reasons := map[string]string{}
	switch {
	case closing:
		reasons["process"] = "shutting down"
	case len(checks) == 0:
		reasons["process"] = "starting"
	}
	for name, check := range checks {
		if err := check(); err != nil {
			reasons[name] = err.Error()
		}
	}
	return reasons
}

// close makes the service not ready for good.
func (r *Readiness) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
}

// ServeHTTP answers 200 or 503, both with the reasons.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	reasons := r.Reasons()
	body, err := json.Marshal(struct {
		Ready   bool              `json:"ready"`
		Reasons map[string]string `json:"reasons"`
	}{len(reasons) == 0, reasons})
	if err != nil {
		http.Error(w, "readiness cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if len(reasons) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(append(body, '\n')) // the prober has gone
}
