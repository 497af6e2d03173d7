package flock_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/internal/flock"
)

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := flock.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flock.Lock(path); !errors.Is(err, flock.ErrHeld) {
		t.Errorf("a second holder: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := flock.Lock(path)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}
