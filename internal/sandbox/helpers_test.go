package sandbox_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// request is one HTTP request of a test.
type request struct {
	method, path, token, body string
	header                    http.Header
	// patience is how long the client waits; 0 as long as the test does.
	patience time.Duration
}

type response struct {
	status int
	header http.Header
	body   string
}

func (r response) code(tb testing.TB) string {
	tb.Helper()
	var p struct {
		Code   string `json:"code"`
		Status int    `json:"status"`
	}
	if err := json.Unmarshal([]byte(r.body), &p); err != nil {
		tb.Fatalf("status %d is not a problem document: %s", r.status, r.body)
	}
	if got := r.header.Get("Content-Type"); got != "application/problem+json" || p.Status != r.status {
		tb.Errorf("problem has content type %q and status %d, sent %d", got, p.Status, r.status)
	}
	return p.Code
}

func send(tb testing.TB, url string, q request) response {
	tb.Helper()
	r, err := trySend(tb, url, q)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func trySend(tb testing.TB, url string, q request) (response, error) {
	ctx := tb.Context()
	if q.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.patience)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, url+q.path, strings.NewReader(q.body))
	if err != nil {
		return response{}, err
	}
	req.GetBody = nil // a broken connection is the test's to see
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.token != "" {
		req.Header.Set("Authorization", "Bearer "+q.token)
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(body)}, err
}

const duplicateRefund = `{"tenant":"acme-in","order_id":"8472","payment_id":"pay_8472_b","amount_minor":200000,"currency":"INR","reference":"refund:req-8472:pay_8472_b","reason":"duplicate_capture"}`

func refund(key, body string) request {
	return request{
		method: http.MethodPost, path: "/v1/refunds", token: sandboxtest.RefundWriteKey, body: body,
		header: http.Header{"Idempotency-Key": {key}},
	}
}

// refundOf changes fields of the founding case's refund.
func refundOf(tb testing.TB, change map[string]any) string {
	tb.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(duplicateRefund), &fields); err != nil {
		tb.Fatal(err)
	}
	for name, value := range change {
		fields[name] = value
	}
	body, err := json.Marshal(fields)
	if err != nil {
		tb.Fatal(err)
	}
	return string(body)
}

func parseRefund(tb testing.TB, r response) sandbox.Refund {
	tb.Helper()
	var a struct {
		Refund sandbox.Refund `json:"refund"`
	}
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || a.Refund.RefundID == "" {
		tb.Fatalf("status %d is not a refund: %s", r.status, r.body)
	}
	return a.Refund
}

// setFaults switches faults on by the API, as texts.
func setFaults(tb testing.TB, s *sandboxtest.Sandbox, texts ...string) {
	tb.Helper()
	var all sandbox.Faults
	for _, text := range texts {
		x, err := sandbox.ParseFault(text)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, x)
	}
	if err := s.Admin.SetFaults(tb.Context(), all); err != nil {
		tb.Fatal(err)
	}
}

// struck compares how often the faults struck, in their order.
func struck(tb testing.TB, s *sandboxtest.Sandbox, want ...int) {
	tb.Helper()
	all, err := s.Admin.Faults(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	var got []int
	for _, x := range all {
		got = append(got, x.Struck)
	}
	if !slices.Equal(got, want) {
		tb.Errorf("struck %v, want %v: %v", got, want, all)
	}
}

// eventually waits, for a bounded time, until something is so.
func eventually(tb testing.TB, so func() bool) {
	tb.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatal("it does not come to that")
		}
	}
}
