package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

type refundPage struct {
	Refunds []sandbox.Refund `json:"refunds"`
	Next    string           `json:"next"`
}

// page asks for refunds of acme-in with the write key, which may list too.
func page(tb testing.TB, s *sandboxtest.Sandbox, query string) (p refundPage) {
	tb.Helper()
	got := send(tb, s.URL, request{method: http.MethodGet, path: "/v1/refunds?tenant=acme-in" + query, token: sandboxtest.RefundWriteKey})
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != http.StatusOK || p.Refunds == nil {
		tb.Fatalf("%q: %d %s", query, got.status, got.body)
	}
	return p
}

// pages follows the cursor to the end.
func pages(tb testing.TB, s *sandboxtest.Sandbox, query string) (ids []string) {
	tb.Helper()
	for next := ""; ; {
		p := page(tb, s, query+"&cursor="+url.QueryEscape(next))
		for _, r := range p.Refunds {
			ids = append(ids, r.RefundID)
		}
		if next = p.Next; next == "" {
			return ids
		}
		if len(ids) > 10_000 {
			tb.Fatal("the pages do not end")
		}
	}
}

func penny(tb testing.TB, s *sandboxtest.Sandbox, key string) string {
	tb.Helper()
	return parseRefund(tb, send(tb, s.URL, refund(key, refundOf(tb, map[string]any{"amount_minor": 1})))).RefundID
}

func TestRefundsOfATenant(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	if p := page(t, s, ""); len(p.Refunds) != 0 || p.Next != "" {
		t.Errorf("an empty desk has %+v", p)
	}
	l := sandboxtest.Duplicate()
	l.Refunds = []sandbox.Refund{{RefundID: "dash_z", PaymentID: "pay_8472_a", AmountMinor: 5, Currency: "INR", Status: "succeeded", CreatedAt: s.Clock.Now()}}
	s.Load(t, l)
	other := sandboxtest.Duplicate()
	other.Orders[0].Tenant = "globex"
	for i := range other.Captures {
		other.Captures[i].Tenant = "globex"
	}
	other.Refunds = []sandbox.Refund{{RefundID: "theirs", PaymentID: "pay_8472_a", AmountMinor: 5, Currency: "INR", Status: "succeeded", CreatedAt: s.Clock.Now()}}
	s.Load(t, other)
	s.Clock.Advance(time.Hour)
	since := s.Clock.Now()
	want := []string{"dash_z"}
	for i := range 4 {
		want = append(want, penny(t, s, fmt.Sprint("k", i)))
	}
	// What changes, or is loaded again, keeps its place.
	if err := s.Admin.SetRefundStatus(t.Context(), want[1], "failed"); err != nil {
		t.Fatal(err)
	}
	s.Load(t, l)
	for _, query := range []string{"", "&limit=1", "&limit=2", "&limit=5", "&limit=500"} {
		if got := pages(t, s, query); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	all := page(t, s, "")
	if r := all.Refunds[1]; r.Status != "failed" || r.OrderID != "8472" || r.Tenant != "acme-in" {
		t.Errorf("%+v", r)
	}
	from := "&created_since=" + url.QueryEscape(since.Add(time.Hour).In(time.FixedZone("x", 3600)).Format(time.RFC3339Nano))
	if got := pages(t, s, from); got != nil {
		t.Errorf("since later: %q", got)
	}
	from = "&created_since=" + url.QueryEscape(since.In(time.FixedZone("x", 3600)).Format(time.RFC3339Nano))
	if got := pages(t, s, from+"&limit=3"); !slices.Equal(got, want[1:]) {
		t.Errorf("since: %q, want %q", got, want[1:])
	}
	// A restart changes neither the order nor what a cursor means.
	middle := page(t, s, "&limit=2").Next
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := sandbox.Start(t.Context(), s.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	s.Server = again
	if p := page(t, s, "&cursor="+middle); len(p.Refunds) != 3 || p.Refunds[0].RefundID != want[2] {
		t.Errorf("after a restart: %+v", p)
	}
}

func TestBadQueriesForRefunds(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	for _, query := range []string{
		"", "?tenant=", "?tenant=a%20b", "?tenant=acme-in&tenant=globex", "?tenant=acme-in&order=8472", "?tenant=acme-in&limit=0", "?tenant=acme-in&limit=501",
		"?tenant=acme-in&limit=x", "?tenant=acme-in&cursor=-1", "?tenant=acme-in&cursor=1", "?tenant=acme-in&cursor=x", "?tenant=acme-in&created_since=yesterday",
	} {
		got := send(t, s.URL, request{method: http.MethodGet, path: "/v1/refunds" + query, token: sandboxtest.ReadKey})
		if got.status != http.StatusBadRequest || got.code(t) != "invalid_request" {
			t.Errorf("%q: %d %s", query, got.status, got.body)
		}
	}
}

// Whoever follows the pages while refunds are made misses none that was there
// before, sees none twice, and has a gapless beginning of the final list.
func TestPagesAreCompleteWhileRefundsAreMade(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	s.Load(t, sandboxtest.Duplicate())
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 25 {
				send(t, s.URL, refund(fmt.Sprint(w, "-", i), refundOf(t, map[string]any{"amount_minor": 1})))
			}
		})
	}
	var seen [][]string
	for range 10 {
		seen = append(seen, pages(t, s, "&limit=7"))
	}
	writers.Wait()
	final := pages(t, s, "")
	if len(final) != 100 {
		t.Fatalf("%d refunds", len(final))
	}
	for _, got := range seen {
		if !slices.Equal(got, final[:len(got)]) {
			t.Errorf("%q is not the beginning of %q", got, final)
		}
	}
}
