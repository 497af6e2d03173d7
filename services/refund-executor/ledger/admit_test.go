package ledger_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

func providerRefund(id, payment string, minor int64, status amendsv1.RefundStatus, reference string) *amendsv1.Refund {
	return &amendsv1.Refund{RefundId: id, PaymentId: payment, Amount: inr(minor), Status: status, Reference: reference, CreatedAt: timestamppb.New(now.Add(-time.Hour))}
}

// MONEY-1 and MONEY-4, one way to break them a row. Bug B17: refunded more
// than captured. Bug B18: a refund made in the provider's dashboard.
func TestAdmitMONEY1MONEY4B17B18(t *testing.T) {
	t.Parallel()
	pending := amendsv1.RefundStatus_REFUND_STATUS_PENDING
	failed := amendsv1.RefundStatus_REFUND_STATUS_FAILED
	whole := action("req-1", refund("pay_b", 200000))
	for name, c := range map[string]struct {
		change   func(*ledger.View)
		action   *amendsv1.ActionRecord
		approved bool
		want     string
	}{
		"one duplicate":      {func(*ledger.View) {}, whole, false, "ok"},
		"both duplicates":    {func(*ledger.View) {}, action("req-1", refund("pay_b", 200000), refund("pay_c", 200000)), false, "ok"},
		"all three":          {func(*ledger.View) {}, action("req-1", refund("pay_a", 200000), refund("pay_b", 200000), refund("pay_c", 200000)), true, ledger.ReasonNotOverpaid},
		"more than captured": {func(*ledger.View) {}, action("req-1", refund("pay_b", 200001)), true, ledger.ReasonExceedsCaptured},
		"refunded in the dashboard": {func(v *ledger.View) {
			v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_b", 200000, pending, ""))
		}, whole, true, ledger.ReasonExceedsCaptured},
		"partly in the dashboard": {func(v *ledger.View) { v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_b", 1, pending, "")) }, whole, true, ledger.ReasonExceedsCaptured},
		"dashboard refund failed": {func(v *ledger.View) {
			v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_b", 200000, failed, ""))
		}, whole, false, "ok"},
		"others in the dashboard": {func(v *ledger.View) {
			v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_a", 200000, pending, ""), providerRefund("rf_2", "pay_c", 200000, pending, ""))
		}, whole, true, ledger.ReasonNotOverpaid},
		"another's reference": {func(v *ledger.View) {
			v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_b", 200000, pending, "refund:req-2:pay_b"))
		}, whole, true, ledger.ReasonExceedsCaptured},
		"our reference, never begun": {func(v *ledger.View) {
			v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_b", 200000, pending, "refund:req-1:pay_b"))
		}, whole, true, "undecidable " + ledger.ReasonUnrecordedRefund},
		"not captured":             {func(v *ledger.View) { hold(v.Captures[1]) }, whole, true, ledger.ReasonNotSettled},
		"captured, not settled":    {func(v *ledger.View) { unsettled(v.Captures[1]) }, whole, true, ledger.ReasonNotSettled},
		"others not settled":       {func(v *ledger.View) { unsettled(v.Captures[0]); hold(v.Captures[2]) }, whole, true, ledger.ReasonNotOverpaid},
		"settled but not captured": {func(v *ledger.View) { v.Captures[1].Captured = false }, whole, true, ledger.ReasonContradictory},
		"unknown capture status":   {func(v *ledger.View) { v.Captures[0].Status = amendsv1.CaptureStatus_CAPTURE_STATUS_UNKNOWN }, whole, true, ledger.ReasonContradictory},
		"unknown refund status": {func(v *ledger.View) {
			v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_c", 1, amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN, ""))
		}, whole, true, ledger.ReasonContradictory},
		"payment twice": {func(v *ledger.View) { v.Captures = append(v.Captures, v.Captures[0]) }, whole, true, ledger.ReasonContradictory},
		"refund twice": {func(v *ledger.View) {
			r := providerRefund("rf_1", "pay_c", 1, pending, "")
			v.Refunds = append(v.Refunds, r, r)
		}, whole, true, ledger.ReasonContradictory},
		"refund of unknown payment": {func(v *ledger.View) { v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_x", 1, pending, "")) }, whole, true, ledger.ReasonContradictory},
		"over-refunded elsewhere": {func(v *ledger.View) {
			v.Refunds = append(v.Refunds, providerRefund("rf_1", "pay_c", 200001, pending, ""))
		}, whole, true, ledger.ReasonContradictory},
		"dispute open on it":          {disputed("pay_b", amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN), whole, true, ledger.ReasonDisputed},
		"dispute open on another":     {disputed("pay_a", amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN), whole, true, ledger.ReasonDisputed},
		"charged back":                {disputed("pay_b", amendsv1.DisputeStatus_DISPUTE_STATUS_LOST), whole, true, ledger.ReasonDisputed},
		"another charged back":        {disputed("pay_a", amendsv1.DisputeStatus_DISPUTE_STATUS_LOST), action("req-1", refund("pay_b", 200000), refund("pay_c", 200000)), true, ledger.ReasonNotOverpaid},
		"dispute won":                 {disputed("pay_b", amendsv1.DisputeStatus_DISPUTE_STATUS_WON), whole, true, "ok"},
		"dispute unknown":             {disputed("pay_b", amendsv1.DisputeStatus_DISPUTE_STATUS_UNKNOWN), whole, true, ledger.ReasonContradictory},
		"order in another currency":   {func(v *ledger.View) { v.Order.Total = money.New(2000, "USD") }, whole, true, ledger.ReasonCurrency},
		"payment in another currency": {func(v *ledger.View) { v.Captures[2].Amount = money.New(2000, "USD") }, whole, true, ledger.ReasonCurrency},
		"another order":               {func(v *ledger.View) { v.Order.OrderId = "9001" }, whole, true, ledger.ReasonOrderMismatch},
		"another tenant":              {func(v *ledger.View) { v.Tenant = "other" }, whole, true, ledger.ReasonOrderMismatch},
		"unknown order":               {func(v *ledger.View) { v.Order = nil }, whole, true, ledger.ReasonOrderUnknown},
		"unknown payment":             {func(*ledger.View) {}, action("req-1", refund("pay_x", 1)), true, ledger.ReasonPaymentUnknown},
		"no valid total":              {func(v *ledger.View) { v.Order.Total = inr(-1) }, whole, true, ledger.ReasonContradictory},
	} {
		v := view()
		c.change(&v)
		_, err := ask(t, nil, v, c.action, c.approved)
		if got := reasonOf(t, err); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, c.want, err)
		}
	}
}

func hold(c *amendsv1.Capture) {
	c.Status, c.Captured, c.Settled, c.SettledAt = amendsv1.CaptureStatus_CAPTURE_STATUS_AUTHORIZED, false, false, nil
}

func unsettled(c *amendsv1.Capture) {
	c.Status, c.Settled, c.SettledAt = amendsv1.CaptureStatus_CAPTURE_STATUS_CAPTURED, false, nil
}

func disputed(payment string, s amendsv1.DisputeStatus) func(*ledger.View) {
	return func(v *ledger.View) {
		v.Disputes = append(v.Disputes, &amendsv1.Dispute{DisputeId: "dp_1", PaymentId: payment, Status: s})
	}
}

// Beyond the excess goes only what people approved under a name that says so.
func TestOnlyApprovedGoodwillGoesBelowTheTotal(t *testing.T) {
	t.Parallel()
	v := view()
	v.Captures = v.Captures[:1]
	good := refund("pay_a", 50000)
	good.Kind = ledger.KindGoodwill
	for _, c := range []struct {
		refund   *amendsv1.ActionRefund
		approved bool
		want     string
	}{
		{good, true, "ok"},
		{good, false, ledger.ReasonNotOverpaid},
		{refund("pay_a", 50000), true, ledger.ReasonNotOverpaid},
	} {
		_, err := ask(t, nil, v, action("req-1", c.refund), c.approved)
		if got := reasonOf(t, err); got != c.want {
			t.Errorf("%s approved=%t: %s, want %s", c.refund.GetKind(), c.approved, got, c.want)
		}
	}
}

// What another case has begun counts as soon as it is begun, whether or not
// the provider shows it yet, and once.
func TestOwnIntentsCountOnce(t *testing.T) {
	t.Parallel()
	first, second := action("req-1", refund("pay_b", 200000)), action("req-2", refund("pay_b", 200000))
	begun := begin(t, nil, first)
	key := first.GetRefunds()[0].GetIdempotencyKey()
	shown := view()
	shown.Refunds = append(shown.Refunds, providerRefund("rf_1", "pay_b", 200000, amendsv1.RefundStatus_REFUND_STATUS_PENDING, key))
	failed := view()
	failed.Refunds = append(failed.Refunds, providerRefund("rf_1", "pay_b", 200000, amendsv1.RefundStatus_REFUND_STATUS_FAILED, key))
	altered := view()
	altered.Refunds = append(altered.Refunds, providerRefund("rf_1", "pay_b", 100000, amendsv1.RefundStatus_REFUND_STATUS_PENDING, key))
	twice := view()
	twice.Refunds = append(twice.Refunds,
		providerRefund("rf_1", "pay_b", 200000, amendsv1.RefundStatus_REFUND_STATUS_FAILED, key),
		providerRefund("rf_2", "pay_b", 200000, amendsv1.RefundStatus_REFUND_STATUS_PENDING, key))
	ack := answered(t, begun, key, ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: amendsv1.RefundStatus_REFUND_STATUS_PENDING})
	third := action("req-3", refund("pay_c", 200000))
	for name, c := range map[string]struct {
		entry *amendsv1.EffectEntry
		view  ledger.View
		ask   *amendsv1.ActionRecord
		want  string
	}{
		"begun, not shown":           {begun, view(), second, ledger.ReasonExceedsCaptured},
		"begun and shown":            {begun, shown, second, ledger.ReasonExceedsCaptured},
		"acknowledged and shown":     {ack, shown, third, "ok"},
		"acknowledged, not shown":    {ack, view(), third, "ok"},
		"acknowledged, failed later": {ack, failed, second, "ok"},
		"shown with another amount":  {ack, altered, third, ledger.ReasonContradictory},
		"shown twice":                {ack, twice, third, ledger.ReasonContradictory},
		"the same, in doubt":         {begun, view(), first, "ok"},
		"the same, in doubt, shown":  {begun, shown, first, "ok"},
		"in doubt, now impossible":   {begun, altered, first, "undecidable " + ledger.ReasonContradictory},
	} {
		_, err := ask(t, c.entry, c.view, c.ask, true)
		if got := reasonOf(t, err); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, c.want, err)
		}
	}
}

// The threshold compares the order's refunds of 30 days, so that slices do not
// slip under it; the 30th day counts.
func TestRecentSumsSlices(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-d)) }
	v := view()
	for _, r := range []struct {
		id    string
		minor int64
		at    *timestamppb.Timestamp
	}{{"rf_1", 1, at(time.Minute)}, {"rf_2", 10, at(ledger.Slices)}, {"rf_3", 100, at(ledger.Slices + 1)}, {"rf_4", 1000, nil}} {
		one := providerRefund(r.id, "pay_c", r.minor, amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED, "")
		one.CreatedAt = r.at
		v.Refunds = append(v.Refunds, one)
	}
	begun := begin(t, nil, action("req-2", refund("pay_c", 20000)))
	if adm, err := ask(t, begun, v, action("req-1", refund("pay_b", 70000)), true); err != nil || adm.Recent.GetMinor() != 70000+20000+1011 {
		t.Errorf("recent = %v, %v", adm.Recent, err)
	}
}

// A refund of our own is not older than its beginning, wherever the provider's
// clock stands; one that the provider dates later is as new as that (MONEY-2).
func TestSlicesDoNotTrustTheProvidersClockMONEY2(t *testing.T) {
	t.Parallel()
	first := action("req-1", refund("pay_b", 60000))
	key := first.GetRefunds()[0].GetIdempotencyKey()
	const succeeded = amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		begun, created time.Duration // ago
		reference      string
		want           int64
	}{
		"both now":                            {0, 0, key, 120000},
		"the provider's clock is behind":      {0, 31 * day, key, 120000},
		"it is behind, and settled by hand":   {0, 31 * day, "", 120000},
		"ours is from before, made only now":  {31 * day, 0, key, 120000},
		"both from before":                    {31 * day, 31 * day, key, 60000},
		"both from before, and found by hand": {31 * day, 31 * day, "", 60000},
	} {
		e := answered(t, begin(t, nil, first), key, ledger.Answer{Class: acknowledged, RefundID: "rf_1", Status: succeeded})
		intent(t, e, key).BegunAt = timestamppb.New(now.Add(-c.begun))
		v := view()
		v.Refunds = []*amendsv1.Refund{providerRefund("rf_1", "pay_b", 60000, succeeded, c.reference)}
		v.Refunds[0].CreatedAt = timestamppb.New(now.Add(-c.created))
		adm, err := ask(t, e, v, action("req-2", refund("pay_c", 60000)), false)
		if err != nil || adm.Recent.GetMinor() != c.want {
			t.Errorf("%s: %v, %v, want %d", name, adm.Recent, err, c.want)
		}
	}
}
