package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// The eight deployables as processes of their own: each from its binary and its
// configuration file, on its own credential. A case goes through, the probes
// answer, a wrong configuration is refused with exit code 2, and on SIGTERM
// every process ends cleanly.
func TestServicesAsProcesses(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./services/...")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./services/...: %v\n%s", err, out)
	}
	gatewayAt, consoleAt := freeAddr(t), freeAddr(t)
	w := &world{t: t}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var err error
	w.Desk, err = allinone.Start(w.ctx, allinone.Options{Dir: t.TempDir(), External: true, Operator: true, GatewayListen: gatewayAt, ConsoleListen: consoleAt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	w.GatewayURL, w.ConsoleURL = "http://"+gatewayAt, "http://"+consoleAt
	w.orders(1, true)

	files, err := w.WriteConfigs(t.TempDir(), func(roles.Service) string { return "127.0.0.1:0" })
	if err != nil {
		t.Fatal(err)
	}
	running := map[roles.Service]*process{}
	for s, file := range files {
		running[s] = startProcess(t, filepath.Join(bin, string(s)), "--config", file)
	}
	defer func() {
		if !t.Failed() {
			return
		}
		for s, p := range running {
			t.Logf("%s:\n%s", s, p.log())
		}
	}()
	for s, p := range running {
		addr := w.admin(p)
		w.answers(running[s], "http://"+addr+"/readyz", http.StatusOK)
		w.answers(running[s], "http://"+addr+"/healthz", http.StatusOK)
		if body := w.answers(running[s], "http://"+addr+"/metrics", http.StatusOK); !strings.Contains(body, "target_info") {
			t.Errorf("%s: metrics do not say whose they are:\n%.300s", s, body)
		}
	}
	if w.gateway, w.staff, err = w.Clients(1); err != nil {
		t.Fatal(err)
	}
	if err := w.post(0); err != nil {
		t.Fatal(err)
	}
	v, err := w.finish(0, closed)
	if err != nil {
		t.Fatal(err)
	}
	if v.State != "VERIFIED_CLOSED" || v.Version != 9 || len(w.refunds()) != 1 {
		t.Errorf("ended %s at v%d with %d refunds", v.State, v.Version, len(w.refunds()))
	}
	w.sound(1, amendsv1.CaseState_CASE_STATE_VERIFIED_CLOSED)

	for s, p := range running {
		if err := p.stop(); err != nil {
			t.Errorf("%s does not end cleanly: %v\n%s", s, err, p.log())
		}
	}
	for s, file := range files {
		wrong := filepath.Join(t.TempDir(), "wrong.yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(wrong, append(text, []byte("\nno_such_key: 1\n")...), 0o600); err != nil {
			t.Fatal(err)
		}
		err = exec.CommandContext(w.ctx, filepath.Join(bin, string(s)), "--config", wrong, "--check-config").Run()
		if code := exitCode(err); code != 2 {
			t.Errorf("%s: an unknown key ends with code %d, want 2", s, code)
		}
	}
}

// process is a running service.
type process struct {
	cmd *exec.Cmd
	// ended is closed when the process has; err is then how.
	ended chan struct{}
	err   error
	mu    sync.Mutex
	out   bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func startProcess(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	})
	return p
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.ended
	return p.err
}

// admin gives where a process serves its probes, as it says itself: a port that
// was free a moment ago may be somebody else's by now.
func (w *world) admin(p *process) string {
	w.t.Helper()
	for w.ctx.Err() == nil {
		for line := range strings.Lines(p.log()) {
			var started struct {
				Msg, Admin string
			}
			if json.Unmarshal([]byte(line), &started) == nil && started.Msg == "started" {
				return started.Admin
			}
		}
		select {
		case <-w.ctx.Done():
		case <-p.ended:
			w.t.Fatalf("the process ended: %v\n%s", p.err, p.log())
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.t.Fatalf("the process does not say where its probes are:\n%s", p.log())
	return ""
}

// answers polls an address until it answers with a status, and gives the body.
func (w *world) answers(p *process, url string, status int) string {
	w.t.Helper()
	last := "no answer"
	for w.ctx.Err() == nil {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
			_ = resp.Body.Close()
			if resp.StatusCode == status {
				return string(body)
			}
			last = string(body)
		}
		select {
		case <-w.ctx.Done():
		case <-p.ended:
			w.t.Fatalf("the process ended: %v\n%s", p.err, p.log())
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.t.Fatalf("%s does not answer with %d: %s\n%s", url, status, last, p.log())
	return ""
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // exactly what Run returns
		return e.ExitCode()
	}
	return -1
}
