package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// forbidden texts.
var forbidden = []struct {
	text    *regexp.Regexp
	because string
	// planted is what it must find, put together here so that this file does
	// not hold it.
	planted string
}{
	{regexp.MustCompile(`(^|[^A-Za-z0-9_.*-])/(home|root|Users|work(space)?s?)/[A-Za-z0-9_]`), "a path of somebody's machine means nothing on the next one", "/ho" + "me/ann/amends"},
	{regexp.MustCompile(`\b(TO[D]O|FIX[M]E)\b`), "unfinished work belongs in the tracker, with an owner", "TO" + "DO later"},
}

// skippedDirs hold nothing of ours, or nothing written.
var skippedDirs = []string{".git", "bin", ".amends", "third_party", "node_modules", "testdata"}

// exempt files name forbidden texts in order to forbid them.
var exempt = []string{".golangci.yml"}

// forbiddenIn gives the lines of a text that hold something forbidden.
func forbiddenIn(path string, text []byte) (out []string) {
	for i, line := range bytes.Split(text, []byte("\n")) {
		for _, f := range forbidden {
			if found := f.text.Find(line); found != nil {
				out = append(out, fmt.Sprintf("%s:%d holds %q: %s", path, i+1, found, f.because))
			}
		}
	}
	return out
}

func TestNoForbiddenTexts(t *testing.T) {
	t.Parallel()
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skippedDirs, d.Name()):
			return filepath.SkipDir
		case !d.Type().IsRegular() || slices.Contains(exempt, d.Name()) || strings.HasSuffix(path, ".sum") || strings.HasSuffix(path, ".pb.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			return nil
		}
		seen++
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		report(t, forbiddenIn(rel, text))
		return nil
	})
	if err != nil || seen < 20 {
		t.Fatalf("%d files read, %v", seen, err)
	}
}
