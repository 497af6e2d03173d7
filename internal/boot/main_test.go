package boot_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/roles"
)

// asService makes the test binary run as a service, for the test of real signals.
const asService = "BOOT_TEST_AS_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(asService) != "" {
		boot.Main(roles.Composer, defaults(), func(ctx context.Context, _ config, s *boot.Service) error {
			s.Readiness.Add("self", func() error { return nil })
			<-ctx.Done()
			return nil
		})
	}
	goleak.VerifyTestMain(m)
}

// running is a service inside the test.
type running struct {
	signals chan os.Signal
	code    chan int
	out     *buffer
	service *boot.Service
}

// buffer is written by the service while the test reads.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// launch starts a service and waits until its Run was entered.
func launch(t *testing.T, extra string, run boot.Run[config]) *running {
	t.Helper()
	r := &running{signals: make(chan os.Signal, 2), code: make(chan int, 1), out: new(buffer)}
	entered := make(chan *boot.Service, 1)
	path := file(t, valid+extra)
	go func() {
		r.code <- boot.Start([]string{"--config", path}, nil, r.out, r.out, r.signals, roles.Composer, defaults(),
			func(ctx context.Context, cfg config, s *boot.Service) error {
				entered <- s
				return run(ctx, cfg, s)
			})
	}()
	select {
	case r.service = <-entered:
	case <-time.After(10 * time.Second):
		t.Fatalf("not started: %s", r.out)
	}
	return r
}

func (r *running) exit(t *testing.T, want int) {
	t.Helper()
	select {
	case got := <-r.code:
		if got != want {
			t.Errorf("exit code %d, want %d:\n%s", got, want, r.out)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("still running:\n%s", r.out)
	}
}

// probe asks the admin listener.
func probe(t *testing.T, addr net.Addr, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + addr.String() + path)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestProbesFollowTheService(t *testing.T) {
	t.Parallel()
	draining, finish := make(chan struct{}), make(chan struct{})
	r := launch(t, "", func(ctx context.Context, _ config, _ *boot.Service) error {
		<-ctx.Done()
		close(draining)
		<-finish
		return ctx.Err()
	})
	ready := func() (int, map[string]string) {
		code, body := probe(t, r.service.Admin, "/readyz")
		var answer struct {
			Ready   bool
			Reasons map[string]string
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Ready != (code == http.StatusOK) {
			t.Fatalf("%d %s: %v", code, body, err)
		}
		return code, answer.Reasons
	}
	if code, reasons := ready(); code != http.StatusServiceUnavailable || reasons["process"] != "starting" {
		t.Errorf("without checks: %d %v", code, reasons)
	}
	var down error
	var mu sync.Mutex
	r.service.Readiness.Add("broker", func() error {
		mu.Lock()
		defer mu.Unlock()
		return down
	})
	if code, reasons := ready(); code != http.StatusOK || len(reasons) > 0 {
		t.Errorf("all well: %d %v", code, reasons)
	}
	mu.Lock()
	down = errors.New("not connected")
	mu.Unlock()
	if code, reasons := ready(); code != http.StatusServiceUnavailable || reasons["broker"] != "not connected" {
		t.Errorf("broker down: %d %v", code, reasons)
	}
	if code, body := probe(t, r.service.Admin, "/metrics"); code != http.StatusOK || !strings.Contains(body, `service_name="composer"`) {
		t.Errorf("metrics: %d %s", code, body)
	}
	r.signals <- syscall.SIGTERM
	<-draining
	if code, reasons := ready(); code != http.StatusServiceUnavailable || reasons["process"] != "shutting down" {
		t.Errorf("draining: %d %v", code, reasons)
	}
	if code, _ := probe(t, r.service.Admin, "/healthz"); code != http.StatusOK {
		t.Errorf("healthz while draining: %d", code)
	}
	close(finish)
	r.exit(t, 0)
}

func TestExitCodesOfARunningService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		code int
	}{
		{"failure", errors.New("broker lost"), 1},
		{"ended by itself", nil, 1},
		{"bad configuration found late", boot.ErrConfig, 2},
	} {
		r := launch(t, "", func(context.Context, config, *boot.Service) error { return c.err })
		r.exit(t, c.code)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	r := launch(t, "shutdown_timeout: 10ms", func(context.Context, config, *boot.Service) error {
		<-release
		return nil
	})
	r.signals <- os.Interrupt
	r.exit(t, 1)
	if !strings.Contains(r.out.String(), "shutdown_timeout") {
		t.Errorf("log:\n%s", r.out)
	}
}

func TestASecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	release, draining := make(chan struct{}), make(chan struct{})
	r := launch(t, "shutdown_timeout: 1h", func(ctx context.Context, _ config, _ *boot.Service) error {
		<-ctx.Done()
		close(draining)
		<-release
		return nil
	})
	r.signals <- os.Interrupt
	<-draining
	r.signals <- os.Interrupt
	r.exit(t, 1)
	close(release)
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	good, bad := file(t, valid), file(t, "workers: none\n")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, 0, "-check-config"},
		{[]string{"--version"}, 0, "composer "},
		{[]string{"--config", good, "--check-config"}, 0, "is valid"},
		{[]string{"--config", bad, "--check-config"}, 2, "broker.url: missing"},
		{[]string{"--config", bad}, 2, "cannot unmarshal"},
		{[]string{}, 2, "--config FILE is required"},
		{[]string{"--config", good, "extra"}, 2, "unexpected argument"},
		{[]string{"--nonsense"}, 2, "nonsense"},
	} {
		var out bytes.Buffer
		code := boot.Start(c.args, []string{"AMENDS_SLIP=1"}, &out, &out, nil, roles.Composer, defaults(),
			func(context.Context, config, *boot.Service) error {
				t.Errorf("%v ran the service", c.args)
				return nil
			})
		if code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, &out)
		}
	}
}

func TestATakenAdminAddressIsAFailure(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var out bytes.Buffer
	code := boot.Start([]string{"--config", file(t, valid)}, []string{"AMENDS_ADMIN_LISTEN=" + l.Addr().String()}, &out, &out, nil,
		roles.Composer, defaults(), func(context.Context, config, *boot.Service) error { return nil })
	if code != 1 || !strings.Contains(out.String(), "admin listener") {
		t.Errorf("exit code %d\n%s", code, &out)
	}
}

// The same with a process of its own and real signals.
func TestMainStopsCleanlyOnSIGTERM(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "--config", file(t, valid))
	cmd.Env = append(os.Environ(), asService+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(stderr)
	if !scan.Scan() || !strings.Contains(scan.Text(), `"msg":"started"`) {
		t.Fatalf("first line %q", scan.Text())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest := ""
	for scan.Scan() {
		rest += scan.Text() + "\n"
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(rest, `"msg":"ended"`) {
		t.Errorf("%v\n%s", err, rest)
	}
}
