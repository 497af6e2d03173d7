package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
)

var (
	printed = regexp.MustCompile("(?m)^```sh\n((?s:.*?))```\n```text\n((?s:.*?))```$")
	moment  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
)

// The commands of stop.md do on a desk what the page says, and print it.
func TestStopPage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a command and runs a desk")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	bin, dir := t.TempDir(), t.TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "amends"), "../cmd/amends")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	d, err := allinone.Start(ctx, allinone.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	blocks := printed.FindAllStringSubmatch(readFile(t, "docs/stop.md"), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		cmd := exec.CommandContext(ctx, "sh", "-e")
		cmd.Stdin = strings.NewReader(b[1])
		cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
			"AMENDS_CONSOLE_URL="+d.ConsoleURL, "AMENDS_TOKEN_FILE="+filepath.Join(dir, "secrets", "staff-sam"))
		out, err := cmd.CombinedOutput()
		if got := moment.ReplaceAllString(string(out), "TIME"); err != nil || got != b[2] {
			t.Errorf("%s: %v\n%s", b[1], err, got)
		}
	}
}
