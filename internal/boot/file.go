package boot

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file that the configuration names, up to a size.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the configuration names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("read %s: more than %d bytes", path, most)
	}
	return data, nil
}
