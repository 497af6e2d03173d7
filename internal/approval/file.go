package approval

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// ErrRegistry: the registry cannot be read or is not valid, so no signature can
// be judged.
var ErrRegistry = errors.New("no valid approver registry")

// MaxRegistry bounds a registry's file form, in bytes.
const MaxRegistry = 4 << 20

// File is a registry that is as its file is now: a key that was added counts
// from the next signature on, and one that was taken out or revoked no longer
// does. A file that cannot be read or is not valid is no registry: there is no
// falling back on what it said before. It is safe for concurrent use.
//
// Whoever changes the file puts the whole new one in its place (rename), so that
// nobody reads half of it.
type File struct {
	read func() ([]byte, error)

	mu       sync.Mutex
	data     []byte
	registry *Registry
}

// NewFile reads a registry for the first time; read gives its file form.
func NewFile(read func() ([]byte, error)) (*File, error) {
	f := &File{read: read}
	if _, _, err := f.Load(); err != nil {
		return nil, err
	}
	return f, nil
}

// Load gives the registry as the file is now, and whether it differs from the
// last one.
func (f *File) Load() (registry *Registry, changed bool, err error) {
	data, err := f.read()
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	if len(data) > MaxRegistry {
		return nil, false, fmt.Errorf("%w: more than %d bytes", ErrRegistry, MaxRegistry)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.registry != nil && bytes.Equal(data, f.data) {
		return f.registry, false, nil
	}
	r, err := ParseRegistry(data)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	f.data, f.registry = data, r
	return r, true, nil
}
