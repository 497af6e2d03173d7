package sandbox_test

import (
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// MONEY-1 at the provider under faults: whatever goes wrong, refunds stay within
// their capture, an answer says what the ledger says, nothing is done where the
// fault says so, a key makes one refund within its window unless a fault takes
// the keys away, and a restart changes nothing.
func TestFaultsKeepTheLedgerRight(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "faulty.jsonl")
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

		used := map[string]time.Time{}
		loose := false // a fault has taken keys away
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			before := s.Ledger(t)
			switch rapid.SampledFrom([]string{"refund", "refund", "refund", "faults", "read", "time", "restart"}).Draw(rt, "step") {
			case "faults":
				drawn := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
					"answer_lost,times=1", "answer_lost,on=reads", "delay,for=1ms", "delay,for=1ms,when=after", "error_before,times=1", "error_before,payment=pay_8472_a",
					"error_after,times=2", "outage,times=1", "outage,on=reads", "clock_skew,for=48h", "clock_skew,for=-48h", "unknown_enum", "unknown_enum,on=refunds.create",
					"contradictory", "keys_forgotten,for=1h", "no_idempotency,times=1",
				}), 0, 4, rapid.ID).Draw(rt, "faults")
				setFaults(t, s, drawn...)
				loose = loose || slices.ContainsFunc(drawn, func(f string) bool {
					return strings.HasPrefix(f, "keys_forgotten") || strings.HasPrefix(f, "no_idempotency")
				})
			case "refund":
				key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
				body := refundOf(t, map[string]any{
					"payment_id":   rapid.SampledFrom([]string{"pay_8472_a", "pay_8472_b"}).Draw(rt, "payment"),
					"amount_minor": rapid.SampledFrom([]int64{1, 100000, 200000}).Draw(rt, "amount"),
					"reference":    key,
				})
				got, err := trySend(t, s.URL, refund(key, body))
				made := s.Ledger(t).Refunds[len(before.Refunds):]
				replayed := got.header.Get("Idempotent-Replayed") == "true"
				nothing := err == nil && (replayed || got.status < 500 && got.status != http.StatusCreated ||
					strings.Contains(got.body, "fault error_before") || strings.Contains(got.body, "fault outage"))
				switch {
				case len(made) > 1, nothing && len(made) > 0:
					rt.Fatalf("%d %s made %+v", got.status, got.body, made)
				case err == nil && got.status == http.StatusCreated && !replayed && (len(made) != 1 || parseRefund(t, got).RefundID != made[0].RefundID):
					rt.Fatalf("%s made %+v", got.body, made)
				}
				if at, known := used[key]; len(made) == 1 {
					if known && !loose && clock.Now().Sub(at) < 24*time.Hour {
						rt.Fatalf("key %s made another refund: %+v", key, made)
					}
					used[key] = clock.Now()
				}
			case "read":
				path := rapid.SampledFrom([]string{"/v1/orders/8472", "/v1/orders/8472/refunds", "/v1/refunds", "/v1/orders/8472/settlement"}).Draw(rt, "path")
				if got, err := trySend(t, s.URL, get(path)); err == nil && got.status != http.StatusOK && !strings.Contains(got.body, "fault ") {
					rt.Fatalf("%s: %d %s", path, got.status, got.body)
				}
				if after := s.Ledger(t); !reflect.DeepEqual(before, after) {
					rt.Fatalf("reading changed %+v into %+v", before, after)
				}
			case "time":
				clock.Advance(time.Duration(rapid.IntRange(1, 30).Draw(rt, "hours")) * time.Hour)
			case "restart":
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
				left[r.PaymentID] -= r.AmountMinor
			}
			if left["pay_8472_a"] < 0 || left["pay_8472_b"] < 0 {
				rt.Fatalf("over-refunded: %v", left)
			}
		}
	})
}
