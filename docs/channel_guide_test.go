package docs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// pagePatience bounds the page; the first build may take its time.
	pagePatience = 4 * time.Minute
	// blockPatience bounds how often a block is asked again.
	blockPatience = 30 * time.Second
)

// codeBlock is a fenced block of the page.
type codeBlock struct {
	section, language, text string
	line                    int
}

// channelGuide reads the page's blocks, in order.
func channelGuide(t *testing.T) []codeBlock {
	t.Helper()
	var blocks []codeBlock
	section := "Opening"
	var open *codeBlock
	n := 0
	for line := range strings.Lines(readFile(t, "docs/channel-guide.md")) {
		n++
		switch {
		case open != nil && line == "```\n":
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line
		case strings.HasPrefix(line, "```"):
			open = &codeBlock{section: section, language: strings.TrimSpace(line[3:]), line: n}
		case strings.HasPrefix(line, "## "):
			section = strings.TrimSpace(line[3:])
		}
	}
	if open != nil || len(blocks) == 0 {
		t.Fatalf("the page's blocks: %d, open: %v", len(blocks), open != nil)
	}
	return blocks
}

// The page is what a reader would run, so all of it is run, from top to bottom
// in one shell: sh blocks as they are, on a desk that the page itself starts,
// and go and python blocks when they have been saved under the name in their
// first line. The block after an sh block is what it printed; compare says
// how the two are compared. Besides that,
//
//   - ~/refunds is a temporary directory, and the ports are free ones;
//   - an sh block that only reads is run again until it shows what the page
//     shows: a case moves while it is looked at;
//   - ask.go and ask.py are run over a line that breaks.
func TestChannelGuide(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and runs a desk")
	}
	for _, tool := range []string{"sh", "curl", "grep", "sed", "sort"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here, which the page's commands need", tool)
		}
	}
	python := exec.Command("python3", "-c", "import http.server, urllib.request").Run() == nil
	r := newReader(t)
	blocks := channelGuide(t)
	for len(blocks) > 0 {
		section := blocks[0].section
		end := slices.IndexFunc(blocks, func(b codeBlock) bool { return b.section != section })
		if end < 0 {
			end = len(blocks)
		}
		ok := t.Run(section, func(t *testing.T) {
			if !python && slices.ContainsFunc(blocks[:end], func(b codeBlock) bool { return b.language == "python" }) {
				t.Skip("no python3 here")
			}
			r.follow(t, blocks[:end])
		})
		if !ok {
			t.Fatalf("what follows %q rests on it", section)
		}
		blocks = blocks[end:]
	}
	if err := r.leave(); err != nil {
		t.Errorf("the shell ended with %v\n%s", err, r.errs.since(0))
	}
}

// reader is somebody who follows the page: a shell, and where it is.
type reader struct {
	ctx        context.Context //nolint:containedctx // one test, one bound on its waiting
	dir        string          // what the page calls ~/refunds
	in         io.WriteCloser
	cmd        *exec.Cmd
	out, errs  output
	blocks     int
	receiverAt string
	// gateway and console are where the desk that was started last listens.
	gateway, console string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pagePatience)
	r := &reader{ctx: ctx, dir: filepath.Join(t.TempDir(), "refunds"), receiverAt: freePort(t)}
	r.cmd = exec.CommandContext(ctx, "sh")
	r.cmd.Dir = ".."
	r.cmd.Env = append(os.Environ(), "LC_ALL=C", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" "+raceFlag()))
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errs
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the shell and all that it starts
	r.cmd.Cancel = func() error { return syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) }
	r.cmd.WaitDelay = 10 * time.Second
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = r.leave() // it was waited for, or killed
	})
	if _, err := io.WriteString(r.in, "trap 'echo \""+ended+"\"' EXIT\nset -eu\n"); err != nil {
		t.Fatal(err)
	}
	return r
}

// leave ends the shell; it fails where the shell did, or was killed.
func (r *reader) leave() error {
	_ = r.in.Close() // twice in the end
	return r.cmd.Wait()
}

// raceFlag builds the desk like this test, which finds its packages built.
func raceFlag() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				return "-race"
			}
		}
	}
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }() // only its number is wanted
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// follow does what a section says.
func (r *reader) follow(t *testing.T, blocks []codeBlock) {
	t.Helper()
	for i, b := range blocks {
		var shown *codeBlock
		if i+1 < len(blocks) && slices.Contains([]string{"json", "text"}, blocks[i+1].language) {
			shown = &blocks[i+1]
		}
		switch b.language {
		case "sh":
			r.command(t, b, shown)
		case "go", "python":
			r.save(t, b)
		case "json", "text":
			if i == 0 || blocks[i-1].language != "sh" {
				t.Errorf("line %d: an answer to no command", b.line)
			}
		case "mermaid":
		default:
			t.Errorf("line %d: a block of %q, which nobody checks", b.line, b.language)
		}
		if t.Failed() {
			return
		}
	}
}

var namedProgram = regexp.MustCompile(`^(?://|#) ([a-z]+\.(?:go|py)): `)

func (r *reader) save(t *testing.T, b codeBlock) {
	t.Helper()
	name := namedProgram.FindStringSubmatch(b.text)
	if name == nil {
		t.Fatalf("line %d: the program does not begin with its name", b.line)
	}
	if err := os.WriteFile(filepath.Join(r.dir, name[1]), []byte(b.text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// changes matches what must not be done twice.
var changes = regexp.MustCompile(` -d | -X |case (post|message|cancel) |approve |kill |&\n|go (build|run) |python3 |cat >`)

// command runs a block and compares what it printed with what is shown.
func (r *reader) command(t *testing.T, b codeBlock, shown *codeBlock) {
	t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, blockPatience)
	defer cancel()
	if program := regexp.MustCompile(`ask\.(go|py)`).FindString(b.text); program != "" {
		bad := newBadLine(t, r.gateway)
		r.point(t, bad.url)
		defer func() {
			bad.check(t)
			r.point(t, r.gateway)
		}()
	}
	for {
		printed := r.run(t, b)
		if shown == nil {
			return
		}
		wrong := compare(shown.language, shown.text, printed)
		if wrong == "" {
			return
		}
		if ctx.Err() != nil || changes.MatchString(b.text) {
			t.Fatalf("line %d shows what line %d does not print: %s\nshown\n%s\nprinted\n%s\n%s", shown.line, b.line, wrong, shown.text, printed, r.errs.since(0))
		}
		pause(ctx)
	}
}

const (
	ended   = "<the shell has ended>"
	deskIs  = "Interrupt to stop.\n"
	anyPort = "127.0.0.1:0"
)

// run gives what a block printed; a desk that it started has then said where it
// is.
func (r *reader) run(t *testing.T, b codeBlock) string {
	t.Helper()
	starts := strings.Contains(b.text, "./amends-dev up")
	r.blocks++
	text := strings.NewReplacer(
		"~/refunds", r.dir, pageGateway, r.gateway, pageConsole, r.console,
		"./amends-dev up", "./amends-dev up --gateway "+anyPort+" --console "+anyPort+" --sandbox "+anyPort,
		"receive.py 9000", "receive.py "+r.receiverAt, "127.0.0.1:9000", "127.0.0.1:"+r.receiverAt,
	).Replace(b.text)
	script := filepath.Join(t.TempDir(), "block.sh")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	from := r.out.len()
	mark := fmt.Sprintf("<end of block %d>\n", r.blocks)
	r.say(t, ". "+script+" </dev/null\nprintf '%s\\n' '"+strings.TrimSpace(mark)+"'\n")
	for {
		printed := r.out.since(from)
		done := strings.Contains(printed, mark)
		printed = strings.Replace(printed, mark, "", 1)
		switch {
		case done && starts && strings.HasSuffix(printed, deskIs):
			r.meet(t, printed)
			return r.asOnThePage(printed)
		case done && !starts:
			return r.asOnThePage(printed)
		case strings.Contains(printed, ended) || r.ctx.Err() != nil:
			t.Fatalf("line %d does not end well:\n%s\n%s", b.line, printed, r.errs.since(0))
		}
		pause(r.ctx)
	}
}

const pageGateway, pageConsole = "http://127.0.0.1:8080", "http://127.0.0.1:8081"

var (
	gatewayIs = regexp.MustCompile(`customer API +(http://\S+)`)
	consoleIs = regexp.MustCompile(`staff console +(http://[^/\s]+)`)
)

// meet reads where a desk is, and goes there.
func (r *reader) meet(t *testing.T, printed string) {
	t.Helper()
	gateway, console := gatewayIs.FindStringSubmatch(printed), consoleIs.FindStringSubmatch(printed)
	if gateway == nil || console == nil {
		t.Fatalf("the desk does not say where it is:\n%s", printed)
	}
	r.gateway, r.console = gateway[1], console[1]
	r.point(t, r.gateway)
}

// point says where the gateway is.
func (r *reader) point(t *testing.T, url string) {
	t.Helper()
	r.say(t, "export AMENDS_GATEWAY_URL="+url+"\n")
}

func (r *reader) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		t.Fatalf("the shell is gone: %v\n%s", err, r.errs.since(0))
	}
}

func (r *reader) asOnThePage(printed string) string {
	return strings.NewReplacer(r.dir, "~/refunds", r.gateway, pageGateway, r.console, pageConsole).Replace(printed)
}

// output is what was printed so far.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Len()
}

func (o *output) since(from int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.all.Bytes()[from:])
}

// pause waits a moment for what another process does.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}
