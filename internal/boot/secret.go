package boot

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// maxSecret bounds a secret file, in bytes.
const maxSecret = 64 << 10

// ReadSecret reads a secret from its file, without the line end at its end. An
// unreadable or empty file is ErrConfig. A file that everybody on the machine
// may read gets a warning: some orchestrators mount secrets that way into
// a container of one user.
func ReadSecret(path string, log *slog.Logger) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the configuration names the file
	if err != nil {
		return nil, fmt.Errorf("%w: secret: %w", ErrConfig, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: secret: %w", ErrConfig, err)
	}
	secret, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("%w: secret: %w", ErrConfig, err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	switch {
	case len(secret) > maxSecret:
		return nil, fmt.Errorf("%w: secret %s: more than %d bytes", ErrConfig, path, maxSecret)
	case len(secret) == 0:
		return nil, fmt.Errorf("%w: secret %s: empty", ErrConfig, path)
	}
	if info.Mode().Perm()&0o004 != 0 {
		log.Warn("secret file is readable by everybody", slog.String("file", path))
	}
	return secret, nil
}
