package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// wire stands between the executor and the provider: it keeps every refund call
// as it was sent and answered, and can lose an answer.
type wire struct {
	*httptest.Server
	t     *testing.T
	proxy *httputil.ReverseProxy

	mu    sync.Mutex
	calls []sent
	// lose is how many answers are to be lost, by order.
	lose map[string]int
}

// sent is one POST /v1/refunds and what came of it.
type sent struct {
	order, key, body string
	status           int
	refund           string
	// replayed: the provider knew the key, and gave the answer of then.
	replayed bool
}

func newWire(t *testing.T, provider string) *wire {
	t.Helper()
	target, err := url.Parse(provider)
	if err != nil {
		t.Fatal(err)
	}
	l := &wire{t: t, lose: map[string]int{}, proxy: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

func (l *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/refunds" {
		if r.Header.Get("Idempotency-Key") != "" {
			l.t.Errorf("B06: an idempotency key was sent to %s %s", r.Method, r.URL.Path)
		}
		l.proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever sent it is gone, and the provider has nothing of it
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	l.proxy.ServeHTTP(answer, r)
	var asked struct {
		Order string `json:"order_id"`
	}
	var told struct {
		Refund struct {
			ID string `json:"refund_id"`
		} `json:"refund"`
	}
	_ = json.Unmarshal(body, &asked)               // a body that does not parse belongs to no order
	_ = json.Unmarshal(answer.Body.Bytes(), &told) // a refusal names no refund
	replayed := answer.Header().Get("Idempotent-Replayed") == "true"
	l.mu.Lock()
	l.calls = append(l.calls, sent{asked.Order, r.Header.Get("Idempotency-Key"), string(body), answer.Code, told.Refund.ID, replayed})
	lost := l.lose[asked.Order] > 0
	if lost {
		l.lose[asked.Order]--
	}
	l.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // it may be dead by now
}

// loses has the next answer about an order lost, when the refund is made.
func (l *wire) loses(order string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose[order]++
}

// of gives the calls about an order, in order.
func (l *wire) of(order string) (out []sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.order == order {
			out = append(out, c)
		}
	}
	return out
}

// sameCalls says what is wrong with the calls about the order of a case: those
// for one refund carry one key and the same bytes, however many there were and
// whoever made them (bugs B01, B02, B07), and nothing is asked for beside what
// the case is to refund.
func (l *wire) sameCalls(order, caseID string, payments []string) (problems []string) {
	first := map[string]string{}
	for _, c := range l.of(order) {
		if body, ok := first[c.key]; ok && body != c.body {
			problems = append(problems, fmt.Sprintf("B07: key %s carried two bodies: %s and %s", c.key, body, c.body))
		}
		first[c.key] = c.body
	}
	want := map[string]bool{}
	for _, p := range payments {
		want["refund:"+caseID+":"+p] = true
	}
	for key, body := range first {
		payment := key[strings.LastIndex(key, ":")+1:]
		if !want[key] || !strings.Contains(body, `"payment_id":"`+payment+`"`) {
			problems = append(problems, fmt.Sprintf("B02: key %s was used for %s", key, body))
		}
	}
	return problems
}
