package docs

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promises are the invariants of the desk and the bugs of others it is tested
// against; guarantees.md has a row of each.
func promises() []string {
	out := []string{
		"MONEY-1", "MONEY-2", "MONEY-3", "MONEY-4", "TRUTH-1", "TRUTH-2", "STATE-1", "STATE-2", "STATE-3",
		"LIVE-1", "LOSS-1", "LOSS-2", "AUTH-1", "AUTH-2", "TENANT-1", "BUDGET-1",
	}
	for i := 1; i <= 30; i++ {
		out = append(out, fmt.Sprintf("B%02d", i))
	}
	return out
}

var (
	promised  = regexp.MustCompile(`^\| *([A-Z]+-\d|B\d\d)\b`)
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

// Every promise has a row, every row names tests that there are, and one of
// them is in a file that speaks of the promise by its name.
func TestGuaranteesNameTheirTests(t *testing.T) {
	t.Parallel()
	repository := os.DirFS("..")
	page, err := fs.ReadFile(repository, "docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := testFiles(repository)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for line := range strings.Lines(string(page)) {
		m := promised.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := m[1]
		seen = append(seen, name)
		spoken := false
		tests := namedTest.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test", name)
			continue
		}
		for _, test := range tests {
			texts, ok := files[test[1]]
			if !ok {
				t.Errorf("%s names %s, which there is not", name, test[1])
			}
			spoken = spoken || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, name) })
		}
		if !spoken {
			t.Errorf("no test that %s names is in a file that speaks of it", name)
		}
	}
	for _, name := range promises() {
		if !slices.Contains(seen, name) {
			t.Errorf("guarantees.md has no row for %s", name)
		}
	}
}

// testFiles gives, by the name of a test, the texts of the files that have one
// of that name.
func testFiles(repository fs.FS) (map[string][]string, error) {
	out := map[string][]string{}
	err := fs.WalkDir(repository, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(repository, path)
		if err != nil {
			return err
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			out[m[1]] = append(out[m[1]], string(text))
		}
		return nil
	})
	return out, err
}
