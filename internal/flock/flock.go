package flock

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld: another process, or another part of this one, holds the lock.
var ErrHeld = errors.New("in use by another process")

// Lock opens a file, making it when it is not there, and locks it. Closing the
// file releases the lock.
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

const (
	tries = 20
	pause = 25 * time.Millisecond
)

// Hold locks an open file. It waits for half a second at most: a process that
// is just being started holds copies of its parent's files until it has loaded,
// and with them, for that moment, a lock that was released.
func Hold(f *os.File) error {
	for try := 1; ; try++ {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case try == tries:
			return fmt.Errorf("%s: %w", f.Name(), ErrHeld)
		}
		time.Sleep(pause) //nolint:forbidigo // a lock tells nobody when it is free; bounded by tries
	}
}
