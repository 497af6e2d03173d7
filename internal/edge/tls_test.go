package edge_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/edge/edgetest"
)

// serve runs an edge that says which protocol it was asked in.
func serve(t *testing.T, at edge.Endpoint, log *slog.Logger) (addr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { edge.WriteJSON(w, http.StatusOK, r.Proto) })
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- edge.Serve(ctx, at, h, log, func(addr string) { ready <- addr }) }()
	select {
	case addr = <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	return addr
}

func get(t *testing.T, client *http.Client, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(body), err
}

func trusting(a *edgetest.Authority, certs ...tls.Certificate) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: a.Pool, Certificates: certs}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}}
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	a := edgetest.New(t)
	files, _ := a.Serving(t, t.TempDir())
	addr := serve(t, edge.Endpoint{Listen: "127.0.0.1:0", TLS: files}, slog.New(slog.DiscardHandler))
	if got, err := get(t, trusting(a), "https://"+addr); err != nil || got != `200 OK "HTTP/2.0"` {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := get(t, http.DefaultClient, "http://"+addr); err != nil || !strings.HasPrefix(got, "400 ") || !strings.Contains(got, "HTTP request to an HTTPS server") {
		t.Errorf("plain HTTP: %q, %v", got, err)
	}
	if _, err := get(t, http.DefaultClient, "https://"+addr); err == nil {
		t.Error("a client that does not know the authority was served")
	}
	old := trusting(a)
	old.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS11
	if _, err := get(t, old, "https://"+addr); err == nil {
		t.Error("TLS 1.1 was served")
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	a, stranger := edgetest.New(t), edgetest.New(t)
	files, _ := a.Serving(t, t.TempDir())
	files.ClientCAFile = a.File
	addr := serve(t, edge.Endpoint{Listen: "127.0.0.1:0", TLS: files}, slog.New(slog.DiscardHandler))
	if got, err := get(t, trusting(a, a.Client(t)), "https://"+addr); err != nil || !strings.HasPrefix(got, "200 ") {
		t.Errorf("with a certificate: %q, %v", got, err)
	}
	for name, client := range map[string]*http.Client{"without one": trusting(a), "with a stranger's": trusting(a, stranger.Client(t))} {
		if got, err := get(t, client, "https://"+addr); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A certificate is replaced while the edge serves; a bad one replaces nothing.
func TestCertificatesRotate(t *testing.T) {
	t.Parallel()
	a, dir := edgetest.New(t), t.TempDir()
	files, first := a.Serving(t, dir)
	var log lines
	addr := serve(t, edge.Endpoint{Listen: "127.0.0.1:0", TLS: files}, slog.New(slog.NewTextHandler(&log, nil)))
	serial := func() int64 {
		t.Helper()
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: a.Pool}}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	await := func(what string, done func() bool) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(20 * time.Second); !done(); <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not seen; logged:\n%s", what, log.String())
			}
		}
	}
	if got := serial(); got != first {
		t.Fatalf("serves %d, want %d", got, first)
	}
	_, second := a.Serving(t, dir)
	await("the second certificate", func() bool { return serial() == second })
	if err := os.WriteFile(files.KeyFile, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	await("the warning", func() bool { return serial() == second && strings.Contains(log.String(), "serving with the last") })
	_, third := a.Serving(t, dir)
	await("the third certificate", func() bool { return serial() == third })
}

func TestTLSIsChecked(t *testing.T) {
	t.Parallel()
	a := edgetest.New(t)
	files, _ := a.Serving(t, t.TempDir())
	other, _ := a.Serving(t, t.TempDir())
	if err := files.Validate(); err != nil {
		t.Error(err)
	}
	if err := (edge.TLS{}).Validate(); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]edge.TLS{"no key": {CertFile: files.CertFile}, "no certificate": {KeyFile: files.KeyFile}, "authority alone": {ClientCAFile: a.File}} {
		if bad.Validate() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for name, bad := range map[string]edge.TLS{
		"missing": {CertFile: files.CertFile + "x", KeyFile: files.KeyFile}, "key of another": {CertFile: files.CertFile, KeyFile: other.KeyFile},
		"swapped":      {CertFile: files.KeyFile, KeyFile: files.CertFile},
		"no authority": {CertFile: files.CertFile, KeyFile: files.KeyFile, ClientCAFile: files.KeyFile},
	} {
		err := edge.Serve(t.Context(), edge.Endpoint{Listen: "127.0.0.1:0", TLS: bad}, http.NotFoundHandler(), slog.New(slog.DiscardHandler), nil)
		if !errors.Is(err, edge.ErrTLS) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever serves credentials in the clear to other machines is told so.
func TestPlainHTTPBeyondThisMachineIsWarnedOf(t *testing.T) {
	t.Parallel()
	a := edgetest.New(t)
	files, _ := a.Serving(t, t.TempDir())
	for _, c := range []struct {
		at   edge.Endpoint
		warn bool
	}{
		{edge.Endpoint{Listen: "127.0.0.1:0"}, false},
		{edge.Endpoint{Listen: ":0"}, true},
		{edge.Endpoint{Listen: ":0", TLS: files}, false},
	} {
		var log lines
		serve(t, c.at, slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Contains(log.String(), "level=WARN"); got != c.warn {
			t.Errorf("%+v: logged %q", c.at, log.String())
		}
	}
}

type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
