package sandbox_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// MONEY-1 at the provider, and replay: under any sequence of refunds, repeats,
// later statuses, passing time and restarts, refunds that count stay within
// their capture, a key makes one refund within its window, and a restart
// changes nothing.
func TestAnySequenceKeepsTheLedgerRight(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "property.jsonl")
	rapid.Check(t, func(rt *rapid.T) {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		clock := sandboxtest.NewClock(time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC))
		open := func() *sandboxtest.Sandbox {
			s, err := sandbox.Start(t.Context(), sandbox.Config{File: file, Keys: sandboxtest.Keys(), Now: clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			return &sandboxtest.Sandbox{Server: s, Admin: sandbox.NewAdmin(s.URL, sandboxtest.AdminKey)}
		}
		s := open()
		defer func() { _ = s.Close() }()
		s.Load(t, sandboxtest.Duplicate())

		type use struct {
			body, id string
			at       time.Time
		}
		used := map[string]use{}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"refund", "refund", "refund", "status", "time", "restart"}).Draw(rt, "step") {
			case "refund":
				key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
				body := refundOf(t, map[string]any{
					"payment_id":   rapid.SampledFrom([]string{"pay_8472_a", "pay_8472_b"}).Draw(rt, "payment"),
					"amount_minor": rapid.SampledFrom([]int64{1, 99999, 100000, 200000}).Draw(rt, "amount"),
				})
				got := send(t, s.URL, refund(key, body))
				u, known := used[key]
				known = known && clock.Now().Sub(u.at) < 24*time.Hour
				switch {
				case known && u.body != body:
					if got.status != http.StatusConflict {
						rt.Fatalf("reused key: %d %s", got.status, got.body)
					}
				case known:
					if id := parseRefund(t, got).RefundID; id != u.id || got.header.Get("Idempotent-Replayed") != "true" {
						rt.Fatalf("key of %s made %s", u.id, id)
					}
				case got.status == http.StatusCreated:
					used[key] = use{body, parseRefund(t, got).RefundID, clock.Now()}
				case got.status != http.StatusUnprocessableEntity:
					rt.Fatalf("%d %s", got.status, got.body)
				}
			case "status":
				if all := s.Ledger(t).Refunds; len(all) > 0 {
					r := rapid.SampledFrom(all).Draw(rt, "refund")
					status := rapid.SampledFrom([]string{"succeeded", "failed", "odd"}).Draw(rt, "status")
					_ = s.Admin.SetRefundStatus(t.Context(), r.RefundID, status) // refused when there is no room
				}
			case "time":
				clock.Advance(time.Duration(rapid.IntRange(1, 30).Draw(rt, "hours")) * time.Hour)
			case "restart":
				before := s.Ledger(t)
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				s = open()
				if after := s.Ledger(t); !reflect.DeepEqual(before, after) {
					rt.Fatalf("restart changed %+v into %+v", before, after)
				}
			}
			left := map[string]int64{"pay_8472_a": 200000, "pay_8472_b": 200000}
			for _, r := range s.Ledger(t).Refunds {
				if r.Status != "failed" {
					left[r.PaymentID] -= r.AmountMinor
				}
			}
			if left["pay_8472_a"] < 0 || left["pay_8472_b"] < 0 {
				rt.Fatal(fmt.Sprint("over-refunded: ", left))
			}
		}
	})
}
