package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxFile bounds a key or token file.
const maxFile = 64 << 10

// readPrivate reads a file that nobody but its owner may read.
func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s may be read by others (mode %04o); make it 0600", path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, nil
}

func readToken(path string) (string, error) {
	data, err := readPrivate(path)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token := bytes.TrimSpace(data)
	if len(token) == 0 {
		return "", errors.New("token: the file is empty")
	}
	return string(token), nil
}
