package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asCommand makes the test's binary the command, for shells to run.
const asCommand = "AMENDS_TEST_IS_THE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// completing gives what a shell offers for a line.
func completing(t *testing.T, shell string, line ...string) []string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("%s is not installed", shell)
	}
	script := map[string]string{
		"bash": `source <(amends completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _amends; printf '%s\n' "${COMPREPLY[@]}"`,
		"fish": `amends completion fish | source; complete -C "$argv"`,
		"zsh": `compdef() {}; compset() {}; _files() { ls -d "${words[CURRENT]##*=}"* }; compadd() { shift; print -l -- "$@" }
			source <(amends completion zsh); words=("$@"); CURRENT=$#; _amends || true`,
	}[shell]
	args := append([]string{"-c", script, "test"}, line...)
	if shell == "fish" {
		args = []string{"--no-config", "-c", script, strings.Join(line, " ")}
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "amends")); err != nil {
		t.Fatal(err)
	}
	cmd.Dir = t.TempDir()
	write(t, filepath.Join(cmd.Dir, "token of web"), nil, 0o600)
	cmd.Env = append(os.Environ(), asCommand+"=1", "HOME="+cmd.Dir, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(got)
	return got
}

// The scripts work in the shells themselves; bash is everywhere.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			lines := []struct{ line, want []string }{
				{[]string{"amends", "case", ""}, []string{"cancel", "deliveries", "follow", "list", "message", "post", "request", "show"}},
				{[]string{"amends", "case", "show", "--token-file", "tok"}, []string{"token of web"}},
				{[]string{"amends", "app"}, []string{"approve", "approver"}},
				{[]string{"amends", "approve", "req-1", "--no"}, []string{"--no-wait"}},
				{[]string{"amends", "completion", ""}, []string{"bash", "fish", "zsh"}},
				{[]string{"amends", "nothing", ""}, []string{""}},
			}
			if shell != "bash" {
				lines = lines[:2]
			}
			for _, c := range lines {
				got := completing(t, shell, c.line...)
				for i := range got { // fish tells a path as it is to be typed
					got[i] = strings.ReplaceAll(got[i], `\ `, " ")
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%q: %q, want %q", c.line, got, c.want)
				}
			}
		})
	}
}
