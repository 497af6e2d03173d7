package refunds

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	"github.com/amends-dev/amends/services/refund-executor/provider"
	"github.com/amends-dev/amends/services/refund-executor/provider/providertest"
)

// Against the real sandbox over real HTTP.
func TestAdapterAgainstTheSandbox(t *testing.T) {
	t.Parallel()
	providertest.Run(t, func(t *testing.T) providertest.World {
		s := sandboxtest.Start(t)
		target, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		var lose atomic.Bool
		forward := httputil.NewSingleHostReverseProxy(target)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && lose.CompareAndSwap(true, false) {
				forward.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		open := func(key string) *Adapter {
			a, err := Open(Config{URL: front.URL, Key: key, KeyWindow: 24 * time.Hour, Now: s.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.Close)
			return a
		}
		return providertest.World{
			Provider: open(sandboxtest.RefundWriteKey), Reader: open(sandboxtest.ReadKey), Lister: open(sandboxtest.ReadKey),
			Now: s.Clock.Now, Advance: s.Clock.Advance, LoseNext: func() { lose.Store(true) },
			Load: func(o provider.Order) { s.Load(t, ledgerOf(o)) },
			SetStatus: func(id, word string) {
				if err := s.Admin.SetRefundStatus(t.Context(), id, word); err != nil {
					t.Error(err)
				}
			},
			ByHand: func(r provider.Request) {
				s.Load(t, sandbox.Ledger{Refunds: []sandbox.Refund{{
					RefundID: "rf_hand", Tenant: r.Tenant, OrderID: r.OrderID, PaymentID: r.PaymentID,
					AmountMinor: r.Amount.GetMinor(), Currency: r.Amount.GetCurrency(), Status: "pending", CreatedAt: s.Clock.Now(),
				}}})
			},
		}
	})
}

// ledgerOf gives an order in the sandbox's form.
func ledgerOf(o provider.Order) sandbox.Ledger {
	id := o.Order.GetOrderId()
	l := sandbox.Ledger{Orders: []sandbox.Order{{
		OrderID: id, Tenant: providertest.Tenant, CustomerID: "cust_5519", TotalMinor: o.Order.GetTotal().GetMinor(),
		Currency: o.Order.GetTotal().GetCurrency(), PlacedAt: o.Order.GetPlacedAt().AsTime(),
	}}}
	for _, c := range o.Captures {
		captured, settled := c.GetCapturedAt().AsTime(), c.GetSettledAt().AsTime()
		l.Captures = append(l.Captures, sandbox.Capture{
			PaymentID: c.GetPaymentId(), OrderID: id, Tenant: providertest.Tenant, AmountMinor: c.GetAmount().GetMinor(), Currency: c.GetAmount().GetCurrency(),
			Status:   strings.ToLower(strings.TrimPrefix(c.GetStatus().String(), "CAPTURE_STATUS_")),
			Captured: c.GetCaptured(), Settled: c.GetSettled(), CapturedAt: &captured, SettledAt: &settled, Method: c.GetMethod(),
		})
	}
	return l
}
