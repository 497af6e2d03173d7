package completion_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/amends-dev/amends/internal/completion"
)

type command struct {
	Level string `enum:"debug,info,," default:"" short:"l"`
	Case  struct {
		Show struct {
			Case  string `arg:""`
			JSON  bool   `name:"json"`
			Token string `type:"path" short:"t"`
		} `cmd:""`
		Post struct {
			Text string `arg:""`
			Kind string `arg:"" enum:"web,app"`
			File string `arg:"" type:"existingfile"`
		} `cmd:"" aliases:"open"`
	} `cmd:""`
	Run struct {
		Now struct {
			Dir string `type:"path"`
		} `cmd:"" default:"withargs"`
		Later struct{} `cmd:""`
	} `cmd:""`
	Secret struct{} `cmd:"" hidden:""`
	Quiet  bool     `hidden:""`

	completion.Commands
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	k, err := kong.New(new(command), kong.Name("desk"))
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"":                           "case run completion",
		"run ":                       "now later",
		"run --":                     "--help --level --dir",
		"run --dir ":                 ":files",
		"run --dir x --":             "--help --level --dir",
		"run --level info l":         "later",
		"run later --d":              "",
		"c":                          "case completion",
		"ca":                         "case",
		"x":                          "",
		"nothing ":                   "",
		"case ":                      "show post",
		"case s":                     "show",
		"case show req-1 --":         "--help --level --json --token",
		"case show --j":              "--json",
		"case show --json --t":       "--token",
		"case show --token ":         ":files",
		"case show -t ab":            ":files",
		"case show --token=ab":       ":files",
		"case show --token = ab":     ":files",
		"case show --token=ab --j":   "--json",
		"case show --token x --json": "--json",
		"--level ":                   "debug info",
		"-l d":                       "debug",
		"--level=":                   "--level=debug --level=info",
		"--level=i":                  "--level=info",
		"--level =":                  "debug info",
		"--level info ca":            "case",
		"case post hello ":           "web app",
		"case post hello w":          "web",
		"case open hello web f":      ":files",
		"case post hello web f g":    "",
		"case post -- -x ":           "web app",
		"case post -- -":             "",
		"completion ":                "bash zsh fish",
		"--q":                        "",
		"sec":                        "",
	} {
		if got := completion.Suggest(k.Model, strings.Split(words, " ")); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	if got := completion.Suggest(k.Model, nil); got != nil {
		t.Errorf("no words: %q", got)
	}
}
