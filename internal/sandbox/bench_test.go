package sandbox_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
)

// The service without the network: routing, authorisation, state, journal,
// encoding.
func BenchmarkServe(b *testing.B) {
	for name, q := range map[string]request{
		"order":    {method: "GET", path: "/v1/orders/8472?tenant=acme-in", token: sandboxtest.ReadKey},
		"captures": {method: "GET", path: "/v1/orders/8472/captures?tenant=acme-in", token: sandboxtest.ReadKey},
		"owner":    {method: "POST", path: "/v1/orders/verify-owner", token: sandboxtest.VerifyOwnerKey, body: `{"tenant":"acme-in","order_id":"8472","customer_id":"cust_5519"}`},
	} {
		b.Run(name, func(b *testing.B) {
			s := sandboxtest.Start(b)
			s.Load(b, sandboxtest.Duplicate())
			h := s.Handler()
			for b.Loop() {
				serve(b, h, q, http.StatusOK)
			}
		})
	}
	b.Run("refund", func(b *testing.B) {
		s := sandboxtest.Start(b)
		h := s.Handler()
		const orders = 10000 // many, so that each stays small
		var l sandbox.Ledger
		for i := range orders {
			one := sandboxtest.Duplicate()
			one.Orders[0].OrderID = fmt.Sprint(i)
			c := one.Captures[1]
			c.OrderID, c.PaymentID = fmt.Sprint(i), fmt.Sprint("pay_", i)
			l.Orders, l.Captures = append(l.Orders, one.Orders[0]), append(l.Captures, c)
		}
		s.Load(b, l)
		bodies := make([]string, orders)
		for i := range bodies {
			bodies[i] = refundOf(b, map[string]any{"order_id": fmt.Sprint(i), "payment_id": fmt.Sprint("pay_", i), "amount_minor": 1})
		}
		for i := 0; b.Loop(); i++ {
			serve(b, h, refund(fmt.Sprint("k", i), bodies[i%orders]), http.StatusCreated)
		}
	})
}

func serve(b *testing.B, h http.Handler, q request, want int) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), q.method, q.path, bytes.NewReader([]byte(q.body)))
	r.Header.Set("Authorization", "Bearer "+q.token)
	r.Header.Set("Content-Type", "application/json")
	for name, values := range q.header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != want {
		body, _ := io.ReadAll(w.Body)
		b.Fatalf("%d %s", w.Code, body)
	}
}
