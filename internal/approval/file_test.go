package approval_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/approval"
)

// A key counts from when the file has it until the file has it no more, with no
// restart between, and a file that is no registry is none (AUTH-2).
func TestARegistryIsAsItsFileIsNowAUTH2(t *testing.T) {
	t.Parallel()
	key := func(id string) approval.Key25519 {
		k, err := approval.NewKey("maya", id, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	at := time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)
	file := func(version string, keys ...approval.PublicKey) []byte {
		r, err := approval.NewRegistry(version, approval.Approver{ID: "maya", Roles: []string{approval.RoleApprover}, Tenants: []string{"acme-in"}, Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		data, err := r.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	old, fresh := key("maya-1").PublicEntry(at), key("maya-2").PublicEntry(at)
	revoked := old
	revoked.Revoked = true
	var data []byte
	var broken error
	read := func() ([]byte, error) { return data, broken }
	if _, err := approval.NewFile(read); !errors.Is(err, approval.ErrRegistry) {
		t.Errorf("an empty file: %v", err)
	}
	data = file("1", old)
	f, err := approval.NewFile(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		data    []byte
		broken  error
		version string
		changed bool
	}{
		{"the same", file("1", old), nil, "1", false},
		{"overlapping", file("2", old, fresh), nil, "2", true},
		{"overlapping, again", file("2", old, fresh), nil, "2", false},
		{"unreadable", nil, errors.New("no such file"), "", false},
		{"readable again", file("2", old, fresh), nil, "2", false},
		{"cut off in a key", file("3", revoked, fresh)[:bytes.Index(file("3", revoked, fresh), []byte("public: "))+20], nil, "", false},
		{"with an unknown field", append(file("3", revoked, fresh), "rights: all\n"...), nil, "", false},
		{"empty", nil, nil, "", false},
		{"endless", []byte(strings.Repeat("#", approval.MaxRegistry+1)), nil, "", false},
		{"revoked", file("3", revoked, fresh), nil, "3", true},
		{"taken out", file("4", fresh), nil, "4", true},
	} {
		data, broken = c.data, c.broken
		r, changed, err := f.Load()
		if c.version == "" {
			if !errors.Is(err, approval.ErrRegistry) || r != nil {
				t.Errorf("%s: %v, %v", c.name, r, err)
			}
			continue
		}
		if err != nil || r.Version != c.version || changed != c.changed {
			t.Errorf("%s: %v, changed %t, %v", c.name, r, changed, err)
		}
	}
}
