package boot_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/amends-dev/amends/internal/boot"
)

func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if _, err := boot.ReadFile(path, 4); err == nil {
		t.Error("read what is not there")
	}
	if err := os.WriteFile(path, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := boot.ReadFile(path, 4); err != nil || string(data) != "1234" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := boot.ReadFile(path, 3); err == nil {
		t.Errorf("read %q", data)
	}
}
