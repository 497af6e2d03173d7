package sandbox_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// The seam is wide enough for the fault that matters most: the refund exists
// and its answer is lost (B01).
func TestAnswerLostAfterTheCommit(t *testing.T) {
	t.Parallel()
	clock := sandboxtest.NewClock(sandboxtest.Duplicate().Orders[0].PlacedAt)
	lost := 0
	s, err := sandbox.StartFaulty(t.Context(), sandbox.Config{
		File: filepath.Join(t.TempDir(), "faulty.jsonl"), Keys: sandboxtest.Keys(), Now: clock.Now,
	}, sandbox.Fault{
		Arrived: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Idempotency-Key") != "busy" {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		Committed: func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				lost++
				panic(http.ErrAbortHandler)
			}
			return false
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := sandbox.NewAdmin(s.URL, sandboxtest.AdminKey).Load(t.Context(), sandboxtest.Duplicate()); err != nil {
		t.Fatal(err)
	}
	if got := send(t, s.URL, refund("busy", duplicateRefund)); got.status != http.StatusServiceUnavailable {
		t.Errorf("fault on arrival: %d %s", got.status, got.body)
	}
	if r, err := trySend(t, s.URL, refund("k", duplicateRefund)); err == nil {
		t.Errorf("the answer was not lost: %d %s", r.status, r.body)
	}
	again := send(t, s.URL, refund("k", duplicateRefund))
	if again.header.Get("Idempotent-Replayed") != "true" || parseRefund(t, again).RefundID != "rf_5521" || lost != 1 {
		t.Errorf("repeat: %d %s, %d lost", again.status, again.body, lost)
	}
}
