package executor

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// terms are what a schedule starts from: the order, the provider and the limits.
type terms struct {
	order    provider.Order
	promises provider.Promises
	// lax: the provider refunds more than was captured when it is asked to.
	lax bool
	cfg Config
	// limits are those of the order's currency; none means that a person is
	// always needed.
	limits Limits
}

var limited = []Limits{
	{Currency: "INR", ApprovalThreshold: 100000, SecondThreshold: 5000000, CapTenantHour: 5000000, CapTenantDay: 20000000},
	{Currency: "KWD", ApprovalThreshold: 100000, SecondThreshold: 5000000, CapTenantHour: 5000000, CapTenantDay: 20000000},
}

// totals are order totals around the thresholds, in minor units.
var totals = []int64{200000, 40000, 30000, 50000, 99999, 100000, 6000000}

func drawTerms(w *world) terms {
	code := []string{"INR", "KWD", "JPY"}[w.choose("currency", 12, 2, 1)]
	total := totals[w.choose("total", 6, 5, 3, 3, 1, 1, 2)]
	t := terms{
		order:    provider.Order{Order: &amendsv1.Order{OrderId: theOrder, Total: money.New(total, code), PlacedAt: timestamppb.New(dawn.Add(-48 * time.Hour))}},
		promises: provider.Promises{KeyWindow: 24 * time.Hour, CallTimeout: 5 * time.Second},
		lax:      w.choose("lax", 1, 1) == 1,
		cfg:      Defaults(),
	}
	for i := range 1 + w.choose("captures", 1, 8, 6, 4) {
		t.order.Captures = append(t.order.Captures, drawCapture(w, i, total, code))
	}
	if w.choose("keys", 8, 2) == 1 {
		t.promises.KeyWindow = 0
	}
	t.cfg.Limits = append([]Limits(nil), limited...)
	if w.choose("caps", 3, 1) == 1 {
		for i := range t.cfg.Limits {
			t.cfg.Limits[i].CapTenantHour, t.cfg.Limits[i].CapRefund = 60000, 45000
		}
	}
	for _, l := range t.cfg.Limits {
		if l.Currency == code {
			t.limits = l
		}
	}
	return t
}

func drawCapture(w *world, i int, total int64, code string) *amendsv1.Capture {
	amount := []int64{total, total / 2, total + total/2}[w.choose("amount", 10, 2, 1)]
	c := &amendsv1.Capture{
		PaymentId: fmt.Sprintf("pay_%c", 'a'+i), Amount: money.New(amount, code), Status: amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED,
		Captured: true, Settled: true, Method: "card_visa_4417",
		CapturedAt: timestamppb.New(dawn.Add(-48*time.Hour + time.Duration(i)*time.Second)), SettledAt: timestamppb.New(dawn.Add(-24 * time.Hour)),
	}
	if i > 0 && w.choose("settled", 12, 1) == 1 {
		unsettle(c)
	}
	return c
}

func unsettle(c *amendsv1.Capture) {
	c.Status, c.Captured, c.Settled, c.CapturedAt, c.SettledAt = amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, false, false, nil, nil
}
