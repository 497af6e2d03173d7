package boot_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amends-dev/amends/internal/boot"
)

func TestReadSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, want string
		mode             os.FileMode
		warns, refused   bool
	}{
		{name: "newline at the end", text: "SUAB\n", want: "SUAB", mode: 0o600},
		{name: "windows line end", text: "SUAB\r\n", want: "SUAB", mode: 0o640},
		{name: "space is part of it", text: " a b ", want: " a b ", mode: 0o600},
		{name: "world-readable", text: "SUAB", want: "SUAB", mode: 0o644, warns: true},
		{name: "empty", text: "\n", mode: 0o600, refused: true},
		{name: "too large", text: strings.Repeat("x", 64<<10+1), mode: 0o600, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil { // past the umask
				t.Fatal(err)
			}
			var log bytes.Buffer
			got, err := boot.ReadSecret(path, slog.New(slog.NewJSONHandler(&log, nil)))
			if errors.Is(err, boot.ErrConfig) != c.refused || string(got) != c.want {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			if (log.Len() > 0) != c.warns || c.text != "\n" && strings.Contains(log.String(), c.text) {
				t.Errorf("log %q", log.String())
			}
		})
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if _, err := boot.ReadSecret(path, slog.New(slog.DiscardHandler)); !errors.Is(err, boot.ErrConfig) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
