package docs

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// badLine leads to a gateway, and breaks where a program must stand it: the
// answer to the first post is lost, the second post is told to come back later,
// and the first stream ends after a view of a case that has just begun.
type badLine struct {
	url  string
	line *httputil.ReverseProxy

	mu    sync.Mutex
	posts []string // key and body
	after []string // Last-Event-ID of each stream
}

func newBadLine(t *testing.T, gateway string) *badLine {
	t.Helper()
	to, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	b := &badLine{line: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}}
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

func (b *badLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		b.post(w, r)
		return
	}
	b.mu.Lock()
	b.after = append(b.after, r.Header.Get("Last-Event-ID"))
	first := len(b.after) == 1
	b.mu.Unlock()
	if !first {
		b.line.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	id := strings.Split(r.URL.Path, "/")[3]
	fmt.Fprintf(w, "retry: 1000\n\nid: 1\nevent: view\ndata: {\"case_id\":%q,\"request_id\":%q,\"version\":1,\"state\":\"RECEIVED\",\"timeline\":[],\"replies\":[],\"closed\":false}\n\n", id, id)
}

func (b *badLine) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	b.mu.Lock()
	b.posts = append(b.posts, r.Header.Get("Idempotency-Key")+" "+string(body))
	n := len(b.posts)
	b.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	switch n {
	case 1:
		b.line.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case 2:
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"type":"https://github.com/amends-dev/amends/problems/unavailable","title":"Service Unavailable","status":503,"code":"unavailable"}`)
	default:
		b.line.ServeHTTP(w, r)
	}
}

// check says whether a program stood it: the same post three times, and a
// stream taken up again where it broke.
func (b *badLine) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.posts) != 3 || len(slices.Compact(slices.Clone(b.posts))) != 1 {
		t.Errorf("LOSS-1: posted %q", b.posts)
	}
	if len(b.after) < 2 || b.after[1] != "1" {
		t.Errorf("streams after %q", b.after)
	}
}
