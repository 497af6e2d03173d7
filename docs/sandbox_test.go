package docs

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
)

// The table of faults is the code's.
func TestFaultTable(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("| kind | what goes wrong | own settings | strikes on | example |\n|---|---|---|---|---|\n")
	quoted := func(names ...string) string {
		if len(names) == 0 {
			return ""
		}
		return "`" + strings.Join(names, "`, `") + "`"
	}
	for _, k := range sandbox.FaultKinds() {
		own := quoted(k.Needs...)
		if own != "" && len(k.Takes) > 0 {
			own += ", "
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s | `%s` |\n", k.Kind, k.Does, own+quoted(k.Takes...), quoted(k.On...), k.Example)
	}
	if !strings.Contains(readFile(t, "docs/sandbox.md"), want.String()+"\n") {
		t.Errorf("the table is not\n%s", want.String())
	}
}

// The page's commands are run from top to bottom, on the sandbox that its first
// one starts.
func TestSandboxPage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a program")
	}
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here", tool)
		}
	}
	blocks := regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)\n```$").FindAllStringSubmatch(readFile(t, "docs/sandbox.md"), -1)
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "amends-dev"), "../cmd/amends-dev")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	url, commands, got := "", 0, ""
	for _, b := range blocks {
		switch language, text := b[1], b[2]; language {
		case "json ledger.json":
			if err := os.WriteFile(filepath.Join(dir, "ledger.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			url = serveSandbox(t, dir, blocks[0][2])
		case "sh":
			commands++
			cmd := exec.CommandContext(t.Context(), "sh", "-euc", text)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "URL="+url, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), `"code"`) {
				t.Fatalf("%s%v\n%s", text, err, out)
			}
			got += string(out) + "\n"
		}
	}
	for _, want := range []string{
		`"refund_id":"rf_5521"`, `"status":"pending"`, "refund rf_5521 is failed", "payment pay_8472_a is settled", `"next":""`,
		"0 of 1  answer_lost,payment=pay_8472_a,times=1", `"kind":"webhook_lost"`, "no faults",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if commands != 4 {
		t.Errorf("%d blocks were run", commands)
	}
}

// serveSandbox runs the page's command on a free port, and gives the address.
func serveSandbox(t *testing.T, dir, text string) string {
	t.Helper()
	const page = "127.0.0.1:8090"
	if !strings.Contains(text, page) {
		t.Fatalf("the sandbox is not started at %s: %s", page, text)
	}
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh", "-euc", "exec "+strings.Replace(text, page, "127.0.0.1:0", 1))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(blockPatience, stop)
	t.Cleanup(func() {
		limit.Stop()
		stop()
		_ = cmd.Wait() // it was killed
	})
	url := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text()); found != "" {
			url = found
		}
		if strings.HasPrefix(lines.Text(), "Interrupt") {
			limit.Stop()
			return url
		}
	}
	t.Fatal("the sandbox does not start")
	return ""
}
