package executor_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// front stands before the sandbox as a network does: it sees every request
// and may lose the answer, or answer by itself.
type front struct {
	*httptest.Server
	proxy *httputil.ReverseProxy

	mu    sync.Mutex
	calls []create
	reads int
	// fault is asked about every request before it is passed on; true says
	// that it has answered.
	fault func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool
}

// create is one POST /v1/refunds as it was on the wire.
type create struct {
	key, body, order string
}

func newFront(t *testing.T, provider string) *front {
	t.Helper()
	target, err := url.Parse(provider)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{proxy: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	if r.Method == http.MethodPost {
		var asked struct {
			OrderID string `json:"order_id"`
		}
		_ = json.Unmarshal(body, &asked) // a body that does not parse belongs to no order
		f.calls = append(f.calls, create{key: r.Header.Get("Idempotency-Key"), body: string(body), order: asked.OrderID})
	} else {
		f.reads++
	}
	fault := f.fault
	f.mu.Unlock()
	if fault == nil || !fault(w, r, f.proxy) {
		f.proxy.ServeHTTP(w, r)
	}
}

// disturb sets what happens to requests from now on.
func (f *front) disturb(fault func(w http.ResponseWriter, r *http.Request, pass http.Handler) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// creates gives the refund calls for an order so far.
func (f *front) creates(order string) []create {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []create
	for _, c := range f.calls {
		if c.order == order {
			out = append(out, c)
		}
	}
	return out
}

func (f *front) readings() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

// loseAnswer lets a refund be made and breaks the connection before its answer.
func loseAnswer(_ http.ResponseWriter, r *http.Request, pass http.Handler) bool {
	if r.Method != http.MethodPost {
		return false
	}
	pass.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// loseRequest breaks the connection before a refund is made.
func loseRequest(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
	if r.Method != http.MethodPost {
		return false
	}
	panic(http.ErrAbortHandler)
}

// respond answers refund calls by itself.
func respond(status int, body string) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the caller may have gone
		return true
	}
}
