package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/amends-dev/amends/internal/roles"
)

// seeds are the NKEY user seeds of the identities.
type seeds map[roles.Service][]byte

// SeedFile is where a directory keeps the seed of an identity.
func SeedFile(dir string, id roles.Service) string {
	return filepath.Join(dir, string(id)+".nk")
}

// loadSeeds reads each identity's seed from dir and makes the missing ones,
// readable by the owner only. Without a dir the seeds live in memory.
func loadSeeds(dir string, ids []roles.Service) (seeds, error) {
	out := make(seeds, len(ids))
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the seed directory: %w", err)
		}
	}
	for _, id := range ids {
		seed, err := loadSeed(dir, id)
		if err != nil {
			return nil, fmt.Errorf("seed of %s: %w", id, err)
		}
		out[id] = seed
	}
	return out, nil
}

func loadSeed(dir string, id roles.Service) ([]byte, error) {
	if dir == "" {
		return newSeed()
	}
	file := SeedFile(dir, id)
	seed, err := os.ReadFile(file) //nolint:gosec // the operator's own directory
	if err == nil {
		return bytes.TrimSpace(seed), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if seed, err = newSeed(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator's own directory
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(seed[:len(seed):len(seed)], '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return seed, nil
}

func newSeed() ([]byte, error) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("make a user key: %w", err)
	}
	return kp.Seed()
}

// public gives the public key of every identity.
func (s seeds) public() (map[roles.Service]string, error) {
	out := make(map[roles.Service]string, len(s))
	for id, seed := range s {
		kp, err := nkeys.FromSeed(seed)
		if err != nil {
			return nil, fmt.Errorf("seed of %s: %w", id, err)
		}
		if out[id], err = kp.PublicKey(); err != nil {
			return nil, fmt.Errorf("seed of %s: %w", id, err)
		}
	}
	return out, nil
}
