package payments_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/payments"
	"github.com/amends-dev/amends/internal/sandbox"
	"github.com/amends-dev/amends/internal/sandbox/sandboxtest"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

func TestListTenantRefunds(t *testing.T) {
	t.Parallel()
	s := sandboxtest.Start(t)
	l := sandboxtest.Duplicate()
	const many = 450 // more than two pages
	var want []string
	for i := range many {
		id := fmt.Sprintf("dash_%d", many-i)
		want = append(want, id)
		l.Refunds = append(l.Refunds, sandbox.Refund{
			RefundID: id, PaymentID: "pay_8472_a", AmountMinor: 1, Currency: "INR", Status: "succeeded",
			Reference: "dashboard", CreatedAt: s.Clock.Now().Add(time.Duration(i) * time.Second),
		})
	}
	s.Load(t, l)
	for _, key := range []string{sandboxtest.ReadKey, sandboxtest.RefundWriteKey} {
		c := client(t, s.URL, key)
		for _, from := range []int{0, 1, many - 1, many} {
			var since time.Time
			if from > 0 {
				since = s.Clock.Now().Add(time.Duration(from) * time.Second)
			}
			var got []string
			for cursor := ""; ; {
				page, err := c.ListTenantRefunds(t.Context(), "acme-in", since, cursor)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page.Refunds {
					if r.OrderID != "8472" {
						t.Errorf("order %q", r.OrderID)
					}
					got = append(got, r.Refund.GetRefundId())
				}
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			if !slices.Equal(got, want[from:]) {
				t.Errorf("from %d: %d refunds", from, len(got))
			}
		}
	}
	c := client(t, s.URL, sandboxtest.ReadKey)
	page, err := c.ListTenantRefunds(t.Context(), "acme-in", time.Time{}, "")
	if err != nil {
		t.Fatal(err)
	}
	first := &amendsv1.Refund{
		RefundId: "dash_450", PaymentId: "pay_8472_a", Amount: &amendsv1.Money{Minor: 1, Currency: "INR"},
		Status: amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED, Reference: "dashboard", CreatedAt: timestamppb.New(s.Clock.Now()),
	}
	if !proto.Equal(page.Refunds[0].Refund, first) {
		t.Errorf("%v", page.Refunds[0].Refund)
	}
	if _, err := c.ListTenantRefunds(t.Context(), "acme-in", time.Time{}, "&tenant=globex"); !errors.Is(err, payments.ErrRejected) {
		t.Errorf("a cursor nobody gave: %v", err)
	}
	if _, err := c.ListTenantRefunds(t.Context(), "acme in", time.Time{}, ""); !errors.Is(err, payments.ErrRejected) {
		t.Errorf("no tenant: %v", err)
	}
}

// A list that holds another tenant's refund, or whose pages do not end, is no
// evidence.
func TestUnusableLists(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"refunds":[{"refund_id":"rf_1","tenant":"globex","order_id":"1"}],"next":""}`,
		`{"refunds":[{"refund_id":"rf_1","tenant":"acme-in"}],"next":""}`,
		`{"refunds":[{"tenant":"acme-in","order_id":"1"}],"next":""}`,
		`{"refunds":[{"refund_id":"rf_1","tenant":"acme-in","order_id":"1"}],"next":"7"}`,
		`{"refunds":[],"next":"8"}`,
		`{"next":""}`,
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, body) }))
		_, err := client(t, web.URL, "k").ListTenantRefunds(t.Context(), "acme-in", time.Time{}, "7")
		if web.Close(); !errors.Is(err, payments.ErrUnavailable) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
