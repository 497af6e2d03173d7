package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/amends-dev/amends/"

// pkg is a package as the go command lists it, with its path inside the module.
type pkg struct {
	Path         string `json:"ImportPath"`
	Name, Dir    string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// imports are those of the package itself, or also those of its tests.
func (p pkg) imports(withTests bool) []string {
	if !withTests {
		return p.Imports
	}
	all := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
	slices.Sort(all)
	return slices.Compact(all)
}

// in reports whether the package is one of dirs, or below one.
func (p pkg) in(dirs ...string) bool { return within(p.Path, dirs...) }

func within(path string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return path == d || strings.HasPrefix(path, d+"/") })
}

// testPackage reports whether the package exists for tests, like bustest.
func (p pkg) testPackage() bool { return strings.HasSuffix(p.Name, "test") }

var root = sync.OnceValues(func() (string, error) { return filepath.Abs(filepath.Join("..", "..")) })

var listed = sync.OnceValues(func() ([]pkg, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Dir,Imports,TestImports,XTestImports,Deps,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &stderr)
	}
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		for _, paths := range [][]string{{p.Path}, p.Imports, p.TestImports, p.XTestImports, p.Deps} {
			for i := range paths {
				paths[i] = strings.TrimPrefix(paths[i], module)
			}
		}
		p.Path = strings.TrimPrefix(p.Path, module)
		pkgs = append(pkgs, p)
	}
})

// packages are those of the module; a path inside it has no module prefix.
func packages(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 5 {
		t.Fatalf("only %d packages listed", len(pkgs))
	}
	return pkgs
}

// source is one parsed Go file.
type source struct {
	pkg  pkg
	name string // the file's name
	set  *token.FileSet
	file *ast.File
}

func (s source) path() string { return s.pkg.Path + "/" + s.name }

func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

func (s source) generated() bool { return ast.IsGenerated(s.file) }

func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path(), s.set.Position(n.Pos()).Line)
}

func (s source) lines() int { return s.set.Position(s.file.FileEnd).Line }

func parse(p pkg, name string, text any) (source, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("parse %s/%s: %w", p.Path, name, err)
	}
	return source{pkg: p, name: name, set: set, file: f}, nil
}

var parsed = sync.OnceValues(func() ([]source, error) {
	pkgs, err := listed()
	if err != nil {
		return nil, err
	}
	var out []source
	for _, p := range pkgs {
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			s, err := parse(p, name, nil)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
	}
	return out, nil
})

func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// report fails the test once for each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}
