package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestReadmeNamesTheTwoCommands(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"make demo", "make test"} {
		if !strings.Contains(string(readme), command) {
			t.Errorf("README.md does not name %q", command)
		}
	}
}

func TestDocumentsHold(t *testing.T) {
	t.Parallel()
	problems, err := check(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestIndexNamesEveryDocument(t *testing.T) {
	t.Parallel()
	repository := os.DirFS("..")
	index, err := fs.ReadFile(repository, "docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, target := range links(string(index)) {
		file, _, _ := strings.Cut(target, "#")
		named = append(named, path.Join("docs", file))
	}
	pages, err := documents(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if strings.HasPrefix(page, "docs/") && page != "docs/README.md" && !slices.Contains(named, page) {
			t.Errorf("docs/README.md does not name %s", page)
		}
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, want string
	}{
		{"good", "# A b\n[a](other.md#the-first-part), [b](#a-b), [c](https://example.org/x), `make build`", ""},
		{"reference", "[a][1]\n\n[1]: missing.md", "missing.md"},
		{"missing file", "see [a](missing.md)", "missing.md"},
		{"missing anchor", "see [a](other.md#second)", "other.md#second"},
		{"missing own anchor", "see [a](#nothing)", "#nothing"},
		{"outside", "see [a](../../x.md)", "../../x.md"},
		{"absolute", "see [a](/usr/x.md)", "/usr/x.md"},
		{"missing target", "run `make nothing`", "make nothing"},
		{"missing target in a block", "```\nmake nothing\n```", "make nothing"},
		{"link in a block", "```\n[a](missing.md)\n```", ""},
		{"prose", "we make nothing up", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			problems, err := check(fstest.MapFS{
				"Makefile":      {Data: []byte("build: ## x\n\tgo build\n")},
				"docs/page.md":  {Data: []byte(tt.text)},
				"docs/other.md": {Data: []byte("# Other\n## The `first` part\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.want == "" && len(problems) > 0:
				t.Errorf("problems = %q, want none", problems)
			case tt.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], tt.want)):
				t.Errorf("problems = %q, want one that names %q", problems, tt.want)
			}
		})
	}
}

// check gives what is wrong with the documents of a repository.
func check(repository fs.FS) ([]string, error) {
	makefile, err := fs.ReadFile(repository, "Makefile")
	if err != nil {
		return nil, err
	}
	pages, err := documents(repository)
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, page := range pages {
		data, err := fs.ReadFile(repository, page)
		if err != nil {
			return nil, err
		}
		text := string(data)
		for _, target := range links(text) {
			if err := resolve(repository, page, target); err != nil {
				problems = append(problems, fmt.Sprintf("%s: link %s: %v", page, target, err))
			}
		}
		for _, target := range makeTargets(text) {
			if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
				problems = append(problems, fmt.Sprintf("%s: make %s: no such target", page, target))
			}
		}
	}
	return problems, nil
}

// documents lists the project's own Markdown files.
func documents(repository fs.FS) ([]string, error) {
	var pages []string
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".amends", "bin", "third_party"}, name):
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".md":
			pages = append(pages, name)
		}
		return nil
	})
	return pages, err
}

var (
	fence      = regexp.MustCompile("(?ms)^```.*?\n```[ \t]*$")
	span       = regexp.MustCompile("`[^`\n]*`")
	inline     = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)
	reference  = regexp.MustCompile(`(?m)^\[[^\]]+\]:\s*<?([^\s>]+)`)
	scheme     = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	heading    = regexp.MustCompile(`(?m)^#{1,6}\s+(.*?)\s*$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	makeInText = regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z-]*)")
)

// links gives the link targets in a page that lie in the repository.
func links(text string) []string {
	text = span.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	var targets []string
	for _, form := range []*regexp.Regexp{inline, reference} {
		for _, match := range form.FindAllStringSubmatch(text, -1) {
			if !scheme.MatchString(match[1]) {
				targets = append(targets, match[1])
			}
		}
	}
	return targets
}

// makeTargets gives the make targets a page tells its reader to run: in code
// spans, and at the start of a line in a code block.
func makeTargets(text string) []string {
	var targets []string
	for _, code := range append(fence.FindAllString(text, -1), span.FindAllString(fence.ReplaceAllString(text, ""), -1)...) {
		for _, match := range makeInText.FindAllStringSubmatch(code, -1) {
			targets = append(targets, match[1])
		}
	}
	return targets
}

func resolve(repository fs.FS, page, target string) error {
	file, anchor, _ := strings.Cut(target, "#")
	if path.IsAbs(file) {
		return errors.New("absolute path")
	}
	name := page
	if file != "" {
		name = path.Join(path.Dir(page), file)
	}
	if _, err := fs.Stat(repository, name); err != nil {
		return err
	}
	if anchor == "" || path.Ext(name) != ".md" {
		return nil
	}
	data, err := fs.ReadFile(repository, name)
	if err != nil {
		return err
	}
	if !slices.Contains(anchors(string(data)), anchor) {
		return errors.New("no such heading")
	}
	return nil
}

// anchors gives the names under which a page's headings can be linked to.
func anchors(text string) []string {
	var names []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(match[1]), "")
		names = append(names, strings.ReplaceAll(slug, " ", "-"))
	}
	return names
}
