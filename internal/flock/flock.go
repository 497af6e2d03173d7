package flock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld: another process, or another part of this one, holds the lock.
var ErrHeld = errors.New("in use by another process")

// Lock opens a file, making it when it is not there, and locks it without
// waiting. Closing the file releases the lock.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a file of the caller's own directory
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := Hold(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Hold locks an open file without waiting.
func Hold(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("%s: %w", f.Name(), ErrHeld)
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
