package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const maxLines = 500

// sourceRule looks at one file's syntax.
type sourceRule struct {
	name string
	// binds says whether the rule looks at a file.
	binds func(s source) bool
	// finds gives where the rule is broken, and how.
	finds   func(s source) []string
	because string
}

var sourceRules = []sourceRule{
	{
		name:    "deciding packages have no clock",
		binds:   func(s source) bool { return s.pkg.in(pure...) && !s.isTest() },
		finds:   uses("time", "Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"),
		because: "decisions are judged by the broker's time of the message, so that a log can be replayed; take the time as an argument",
	},
	{
		name:    "deciding packages have no floats",
		binds:   func(s source) bool { return s.pkg.in(pure...) },
		finds:   floats,
		because: "money is an integer number of minor units",
	},
	{
		name:    "only boot and commands end the process",
		binds:   func(s source) bool { return s.pkg.Name != "main" && !s.pkg.in("internal/boot") && !s.isTest() },
		finds:   uses("os", "Exit"),
		because: "an exit skips every clean-up above it; return an error",
	},
	{
		name:    "no fatal logging",
		binds:   func(source) bool { return true },
		finds:   uses("log", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"),
		because: "it ends the process in the middle of somebody's work; return an error",
	},
	{
		name:    "a skipped test says why",
		binds:   func(s source) bool { return s.isTest() || s.pkg.testPackage() },
		finds:   silentSkips,
		because: "a test that does not run proves nothing; give Skip the reason",
	},
	{
		name:  "no file is too long to read",
		binds: func(s source) bool { return !s.generated() },
		finds: func(s source) []string {
			if n := s.lines(); n > maxLines {
				return []string{fmt.Sprintf("%s has %d lines, at most %d", s.path(), n, maxLines)}
			}
			return nil
		},
		because: "split it by what its parts are about",
	},
}

func (r sourceRule) findings(files []source) []string {
	var out []string
	for _, s := range files {
		if !r.binds(s) {
			continue
		}
		for _, f := range r.finds(s) {
			out = append(out, f+": "+r.because)
		}
	}
	return out
}

func TestSources(t *testing.T) {
	t.Parallel()
	files := sources(t)
	for _, r := range sourceRules {
		t.Run(r.name, func(t *testing.T) { report(t, r.findings(files)) })
	}
}

// uses finds every mention of functions of a package, under whatever name the
// file imports it.
func uses(path string, names ...string) func(s source) []string {
	return func(s source) (out []string) {
		local := importName(s.file, path)
		if local == "" {
			return nil
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, sel.Sel.Name) {
				out = append(out, fmt.Sprintf("%s uses %s.%s", s.at(n), path, sel.Sel.Name))
			}
			return true
		})
		return out
	}
}

// importName is how a file calls a package, or empty if it does not import it.
func importName(f *ast.File, path string) string {
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err != nil || p != path {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path[strings.LastIndex(path, "/")+1:]
	}
	return ""
}

func floats(s source) (out []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name == "float64" || n.Name == "float32" {
				out = append(out, s.at(n)+" uses "+n.Name)
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT {
				out = append(out, s.at(n)+" uses "+n.Value)
			}
		}
		return true
	})
	return out
}

// silentSkips finds Skip and Skipf without a text, and SkipNow.
func silentSkips(s source) (out []string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch sel.Sel.Name {
		case "SkipNow":
			out = append(out, s.at(n)+" skips")
		case "Skip", "Skipf":
			if len(call.Args) == 0 || emptyText(call.Args[0]) {
				out = append(out, s.at(n)+" skips")
			}
		}
		return true
	})
	return out
}

func emptyText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && strings.Trim(lit.Value, "\"` ") == ""
}

// undocumented gives the packages without a package comment in doc.go. The main
// function's file may carry that of a command; generated packages take theirs
// from the contract.
func undocumented(files []source) []string {
	documented, generated := map[string]bool{}, map[string]bool{}
	var paths []string
	for _, s := range files {
		if s.isTest() {
			continue
		}
		if _, seen := documented[s.pkg.Path]; !seen {
			documented[s.pkg.Path], generated[s.pkg.Path] = false, true
			paths = append(paths, s.pkg.Path)
		}
		generated[s.pkg.Path] = generated[s.pkg.Path] && s.generated()
		place := s.name == "doc.go" || s.pkg.Name == "main" && s.name == "main.go"
		if place && s.file.Doc.Text() != "" {
			documented[s.pkg.Path] = true
		}
	}
	var out []string
	for _, path := range paths {
		if !documented[path] && !generated[path] {
			out = append(out, path+" has no package comment in doc.go: say what it is for, what always holds, and how it fails")
		}
	}
	return out
}

func TestEveryPackageIsDocumented(t *testing.T) {
	t.Parallel()
	report(t, undocumented(sources(t)))
}
