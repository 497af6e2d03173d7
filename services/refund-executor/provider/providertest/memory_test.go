package providertest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) providertest.World {
		var ahead atomic.Int64
		start := time.Date(2026, 3, 12, 10, 14, 0, 0, time.UTC)
		now := func() time.Time { return start.Add(time.Duration(ahead.Load())) }
		m := providertest.NewMemory(now, provider.Promises{KeyWindow: 24 * time.Hour, CallTimeout: 5 * time.Second})
		return providertest.World{
			Provider: m, Reader: m.Reader(), Lister: m, Now: now, Advance: func(d time.Duration) { ahead.Add(int64(d)) },
			Load:      func(o provider.Order) { m.Load(providertest.Tenant, o) },
			SetStatus: func(id, word string) { m.SetStatus(id, payments.RefundStatus(word)) },
			ByHand: func(r provider.Request) {
				if _, err := m.ByHand(r); err != nil {
					t.Error(err)
				}
			},
			LoseNext: func() {
				var once atomic.Bool
				m.SetFault(func(providertest.Call) providertest.Fault {
					if once.CompareAndSwap(false, true) {
						return providertest.LostAfter
					}
					return providertest.None
				})
			},
		}
	})
}
