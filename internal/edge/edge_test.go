package edge_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
)

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestTokensFindTheirHolder(t *testing.T) {
	t.Parallel()
	var tokens edge.Tokens[string]
	for _, holder := range []string{"maya", "ravi"} {
		if err := tokens.Add(hashOf("token of "+holder), holder); err != nil {
			t.Fatal(err)
		}
	}
	for token, want := range map[string]string{
		"token of maya": "maya", "token of ravi": "ravi", "": "", "token of": "", hashOf("token of maya"): "", strings.Repeat("x", 513): "",
	} {
		if got, ok := tokens.Find(token); got != want || ok != (want != "") {
			t.Errorf("Find(%q) = %q, %t", token, got, ok)
		}
	}
	for _, bad := range []string{"", "ab", strings.Repeat("z", 64), strings.ToUpper(hashOf("x")), hashOf("token of maya")} {
		if tokens.Add(bad, "x") == nil {
			t.Errorf("Add(%q) accepted", bad)
		}
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "Basic abc": "", "Bearer": "", "": "", "abc": "",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		if got := edge.Bearer(r); got != want {
			t.Errorf("Bearer(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestSeveralCredentialsAreNone(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header["Authorization"] = []string{"Bearer abc", "Bearer def"}
	if got := edge.Bearer(r); got != "" {
		t.Errorf("Bearer = %q", got)
	}
}

func TestProblemsAreStable(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	edge.WriteProblem(w, deskapi.NewProblem(503, deskapi.CodeUnavailable, "later").After(1500*time.Millisecond))
	want := `{"type":"https://github.com/amends-dev/amends/problems/unavailable","title":"Service Unavailable","status":503,"code":"unavailable","detail":"later"}`
	if w.Code != 503 || w.Body.String() != want || w.Header().Get("Retry-After") != "2" || w.Header().Get("Content-Type") != deskapi.ProblemType {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// Bug B78: credentials in logs.
func TestObserveGivesIDsAndLogsNoSecretsB78(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mux := http.NewServeMux()
	mux.Handle("GET /cases/{id}", edge.NotFound)
	h, err := edge.Observe(mux, log, metricnoop.NewMeterProvider().Meter("test"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for sent, taken := range map[string]bool{"rq-1": true, "": false, "a b": false, "line\nbreak": false, strings.Repeat("x", 65): false} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/cases/canary-path?canary-query", strings.NewReader("canary-body"))
		r.Header.Set("Authorization", "Bearer canary-token")
		r.Header[deskapi.HeaderRequestID] = []string{sent}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Header().Get(deskapi.HeaderRequestID)
		if w.Code != http.StatusNotFound || got == "" || (got == sent) != taken {
			t.Errorf("request id %q gave %d %q", sent, w.Code, got)
		}
	}
	if text := lines.String(); strings.Contains(text, "canary") || strings.Count(text, `route="GET /cases/{id}"`) != 5 {
		t.Errorf("logged:\n%s", text)
	}
}

func TestServeDrains(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, finish := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		edge.WriteJSON(w, http.StatusOK, "done")
	})
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- edge.Serve(ctx, edge.Endpoint{Listen: "127.0.0.1:0"}, h, slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	addr := <-ready
	got := make(chan string, 1)
	go func() {
		req, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+addr, nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		got <- string(body)
	}()
	<-begun
	cancel()
	close(finish)
	if body := <-got; body != `"done"` {
		t.Errorf("the request in flight got %q", body)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if err := edge.Serve(ctx, edge.Endpoint{Listen: "256.0.0.1:1"}, h, slog.New(slog.DiscardHandler), nil); err == nil {
		t.Error("an address that cannot be listened on was accepted")
	}
}
