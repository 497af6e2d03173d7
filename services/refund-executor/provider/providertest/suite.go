package providertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/provider"
)

// Tenant is whose orders the suite works on.
const Tenant = "acme-in"

// World is an adapter and the hand that moves what is behind it.
type World struct {
	// Provider may make refunds, Reader only reads.
	Provider, Reader provider.Provider
	// Lister lists a tenant's refunds.
	Lister provider.Lister
	// Load puts an order on the provider's books.
	Load func(o provider.Order)
	// SetStatus moves a refund to a status, in the provider's own word.
	SetStatus func(refundID, status string)
	// ByHand makes a refund in the provider's own console.
	ByHand func(r provider.Request)
	// LoseNext loses the answer to the next call of Create, after it was done.
	LoseNext func()
	Now      func() time.Time
	Advance  func(time.Duration)
}

// Run tests an adapter. open is called once for each test.
func Run(t *testing.T, open func(t *testing.T) World) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, w World)
	}{
		{"a key makes one refund (B01, B07)", oneKeyOneRefund},
		{"a key is known for its window", keyWindow},
		{"a key with other bytes is a typed conflict (B05)", keyReused},
		{"a lost answer is found by its repeat (B01)", lostAnswer},
		{"never above what was captured (B17, MONEY-1)", neverAboveCaptured},
		{"many at once stay within what was captured (B17)", manyAtOnce},
		{"a refund that failed gives its room back", failedGivesRoom},
		{"no refund without a key (B03)", noKey},
		{"a restricted key reads and makes nothing", restricted},
		{"what is too late is not sent (MONEY-2)", tooLate},
		{"an order shows every refund, whoever made it (B18)", complete},
		{"a tenant's refunds are listed, none left out (MONEY-3)", listed},
		{"amounts are minor units, whatever their digits (B16)", currencies},
		{"only succeeded is success, and the unknown passes through (B15)", statuses},
		{"a tenant sees its own (TENANT-1)", tenants},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// Paid is an order that was paid several times over, each payment settled.
func Paid(order string, total *amendsv1.Money, payments int, at time.Time) provider.Order {
	o := provider.Order{Order: &amendsv1.Order{OrderId: order, Total: total, PlacedAt: timestamppb.New(at.AddDate(0, 0, -3))}}
	for i := range payments {
		o.Captures = append(o.Captures, &amendsv1.Capture{
			PaymentId: fmt.Sprintf("pay_%s_%c", order, 'a'+i), Amount: proto.CloneOf(total), Status: amendsv1.CaptureStatus_CAPTURE_STATUS_SETTLED,
			Captured: true, Settled: true, CapturedAt: timestamppb.New(at.AddDate(0, 0, -3)), SettledAt: timestamppb.New(at.AddDate(0, 0, -2)), Method: "card_visa_4417",
		})
	}
	return o
}

// Ask is a request for a refund of an order's second payment.
func Ask(order, key string, m *amendsv1.Money) provider.Request {
	return provider.Request{Tenant: Tenant, OrderID: order, PaymentID: "pay_" + order + "_b", Amount: m, Reference: key, Reason: "duplicate_capture"}
}

func (w World) body(t *testing.T, r provider.Request) []byte {
	t.Helper()
	b, err := w.Provider.Body(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w World) create(t *testing.T, r provider.Request) provider.Outcome {
	t.Helper()
	return w.Provider.Create(t.Context(), r.Reference, w.body(t, r), w.Now().Add(time.Minute))
}

func (w World) made(t *testing.T, r provider.Request) string {
	t.Helper()
	out := w.create(t, r)
	want(t, "create", out, amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, "")
	if out.RefundID == "" {
		t.Fatalf("no refund id: %+v", out)
	}
	return out.RefundID
}

func (w World) refunds(t *testing.T, order string) []*amendsv1.Refund {
	t.Helper()
	o, err := w.Provider.ReadOrder(t.Context(), Tenant, order)
	if err != nil {
		t.Fatal(err)
	}
	return o.Refunds
}

func (w World) only(t *testing.T, order, refundID string) {
	t.Helper()
	if all := w.refunds(t, order); len(all) != 1 || all[0].GetRefundId() != refundID {
		t.Errorf("order %s has refunds %v, want only %s", order, all, refundID)
	}
}

func want(t *testing.T, what string, out provider.Outcome, class amendsv1.EffectClass, reason string) {
	t.Helper()
	if out.Class != class || reason != "" && out.Reason != reason {
		t.Errorf("%s: %v %q (%v), want %v %q", what, out.Class, out.Reason, out.Err, class, reason)
	}
}

func inr(minor int64) *amendsv1.Money { return money.New(minor, "INR") }

func oneKeyOneRefund(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	r := Ask("8472", "refund:req-8472:pay_8472_b", inr(200000))
	id := w.made(t, r)
	again := w.create(t, r)
	want(t, "again", again, amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED, "")
	if again.RefundID != id || !again.Replayed {
		t.Errorf("again: %+v, first %s", again, id)
	}
	if first, second := w.body(t, r), w.body(t, r); !bytes.Equal(first, second) {
		t.Errorf("two bodies of one request: %s and %s", first, second)
	}
	w.only(t, "8472", id)
}

func keyWindow(t *testing.T, w World) {
	window := w.Provider.Promises().KeyWindow
	if window <= 0 || w.Provider.Promises().CallTimeout <= 0 {
		t.Fatalf("promises %+v", w.Provider.Promises())
	}
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	r := Ask("8472", "key", inr(100000))
	id := w.made(t, r)
	w.Advance(window - time.Second)
	if again := w.create(t, r); again.RefundID != id {
		t.Errorf("inside the window: %+v", again)
	}
	w.only(t, "8472", id)
}

func keyReused(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	id := w.made(t, Ask("8472", "key", inr(100000)))
	for name, r := range map[string]provider.Request{
		"another amount": Ask("8472", "key", inr(50000)),
		"another payment": func() provider.Request {
			r := Ask("8472", "key", inr(100000))
			r.PaymentID = "pay_8472_a"
			return r
		}(),
	} {
		want(t, name, w.create(t, r), amendsv1.EffectClass_EFFECT_CLASS_REFUSED, provider.ReasonKeyReused)
	}
	w.only(t, "8472", id)
}

func lostAnswer(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	r := Ask("8472", "key", inr(200000))
	w.LoseNext()
	out := w.create(t, r)
	if out.Class != amendsv1.EffectClass_EFFECT_CLASS_UNKNOWN || out.RefundID != "" {
		t.Errorf("answer lost: %+v", out)
	}
	id := w.made(t, r)
	w.only(t, "8472", id)
	if got := w.refunds(t, "8472")[0].GetReference(); got != "key" {
		t.Errorf("reference %q", got)
	}
}

func neverAboveCaptured(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	w.made(t, Ask("8472", "k1", inr(120000)))
	want(t, "above", w.create(t, Ask("8472", "k2", inr(80001))), amendsv1.EffectClass_EFFECT_CLASS_REFUSED, "")
	w.made(t, Ask("8472", "k3", inr(80000)))
	want(t, "one more", w.create(t, Ask("8472", "k4", inr(1))), amendsv1.EffectClass_EFFECT_CLASS_REFUSED, "")
}

func manyAtOnce(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	var bodies [20][]byte
	for i := range bodies {
		bodies[i] = w.body(t, Ask("8472", fmt.Sprint("key-", i), inr(50000)))
	}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, body := range bodies {
		wg.Go(func() {
			<-start
			w.Provider.Create(t.Context(), fmt.Sprint("key-", i), body, w.Now().Add(time.Minute))
		})
	}
	close(start)
	wg.Wait()
	if n := len(w.refunds(t, "8472")); n != 4 {
		t.Errorf("%d refunds of 50000 on a capture of 200000", n)
	}
}

func failedGivesRoom(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	id := w.made(t, Ask("8472", "k1", inr(200000)))
	w.SetStatus(id, "failed")
	w.made(t, Ask("8472", "k2", inr(200000)))
	if all := w.refunds(t, "8472"); len(all) != 2 {
		t.Errorf("refunds %v", all)
	}
}

func noKey(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	body := w.body(t, Ask("8472", "key", inr(200000)))
	want(t, "no key", w.Provider.Create(t.Context(), "", body, w.Now().Add(time.Minute)), amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, provider.ReasonKeyInvalid)
	if all := w.refunds(t, "8472"); len(all) != 0 {
		t.Errorf("refunds %v", all)
	}
}

func restricted(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	body := w.body(t, Ask("8472", "key", inr(200000)))
	want(t, "with a key that reads", w.Reader.Create(t.Context(), "key", body, w.Now().Add(time.Minute)), amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, "wrong_scope")
	o, err := w.Reader.ReadOrder(t.Context(), Tenant, "8472")
	if err != nil || len(o.Captures) != 2 || len(o.Refunds) != 0 {
		t.Errorf("read %v, %v", o, err)
	}
}

func tooLate(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	body := w.body(t, Ask("8472", "key", inr(200000)))
	for _, d := range []time.Duration{0, -time.Second} {
		want(t, "too late", w.Provider.Create(t.Context(), "key", body, w.Now().Add(d)), amendsv1.EffectClass_EFFECT_CLASS_NO_EFFECT, provider.ReasonWithdrawn)
	}
	if all := w.refunds(t, "8472"); len(all) != 0 {
		t.Errorf("refunds %v", all)
	}
}

func complete(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	byKey := map[string]string{}
	for i := range 25 {
		r := Ask("8472", fmt.Sprint("key-", i), inr(int64(1000+i)))
		byKey[r.Reference] = w.made(t, r)
	}
	hand := Ask("8472", "", inr(700))
	hand.PaymentID = "pay_8472_a"
	w.ByHand(hand)
	all, found := w.refunds(t, "8472"), 0
	for _, r := range all {
		if id, ours := byKey[r.GetReference()]; ours {
			if found++; r.GetRefundId() != id {
				t.Errorf("reference %s is on refund %s, made as %s", r.GetReference(), r.GetRefundId(), id)
			}
		} else if r.GetPaymentId() != "pay_8472_a" || r.GetAmount().GetMinor() != 700 {
			t.Errorf("refund %v is nobody's", r)
		}
	}
	if len(all) != 26 || found != 25 {
		t.Errorf("%d refunds, %d of them ours", len(all), found)
	}
}

func listed(t *testing.T, w World) {
	var want []string
	fill := func(order string, n int) {
		w.Load(Paid(order, inr(200000), 2, w.Now()))
		for i := range n {
			want = append(want, w.made(t, Ask(order, fmt.Sprint(order, "-", i), inr(int64(1000+i)))))
		}
	}
	fill("one", 17)
	w.Advance(time.Hour)
	since, before := w.Now(), len(want)
	fill("two", 30)
	for from, ids := range map[time.Time][]string{{}: want, since: want[before:], since.Add(time.Minute): nil} {
		var got []string
		for cursor, pages := "", 0; ; pages++ {
			page, err := w.Lister.ListRefunds(t.Context(), Tenant, from, cursor)
			if err != nil || pages > len(want) {
				t.Fatalf("page %d: %v", pages, err)
			}
			for _, r := range page.Refunds {
				if got = append(got, r.Refund.GetRefundId()); !strings.HasPrefix(r.Refund.GetReference(), r.OrderID+"-") {
					t.Errorf("refund %v is listed on order %s", r.Refund, r.OrderID)
				}
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("since %s: %v, want %v", from, got, ids)
		}
	}
	if page, err := w.Lister.ListRefunds(t.Context(), "globex", time.Time{}, ""); err != nil || len(page.Refunds) != 0 {
		t.Errorf("another tenant: %v, %v", page, err)
	}
}

func currencies(t *testing.T, w World) {
	for code, minor := range map[string]int64{"JPY": 50000, "KRW": 1990000, "KWD": 12500, "INR": 200000} {
		order := "o-" + strings.ToLower(code)
		m := money.New(minor, code)
		w.Load(Paid(order, m, 2, w.Now()))
		r := Ask(order, "key-"+code, m)
		if got := string(w.body(t, r)); !strings.Contains(got, fmt.Sprint(minor)) || strings.Contains(got, ".") {
			t.Errorf("%s: body %s", code, got)
		}
		id := w.made(t, r)
		got, err := w.Provider.GetRefund(t.Context(), Tenant, id)
		if err != nil || !money.Equal(got.GetAmount(), m) {
			t.Errorf("%s: read back %v, %v", code, got, err)
		}
		want(t, code+", a hundredth more", w.create(t, Ask(order, "more-"+code, money.New(minor/100+1, code))), amendsv1.EffectClass_EFFECT_CLASS_REFUSED, "")
	}
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	want(t, "another currency", w.create(t, Ask("8472", "key-yen", money.New(2000, "JPY"))), amendsv1.EffectClass_EFFECT_CLASS_REFUSED, "")
}

func statuses(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	id := w.made(t, Ask("8472", "key", inr(200000)))
	for word, status := range map[string]amendsv1.RefundStatus{
		"pending":         amendsv1.RefundStatus_REFUND_STATUS_PENDING,
		"requires_action": amendsv1.RefundStatus_REFUND_STATUS_REQUIRES_ACTION,
		"succeeded":       amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED,
		"failed":          amendsv1.RefundStatus_REFUND_STATUS_FAILED,
		"canceled":        amendsv1.RefundStatus_REFUND_STATUS_CANCELED,
		"in_clearing":     amendsv1.RefundStatus_REFUND_STATUS_UNKNOWN,
	} {
		w.SetStatus(id, word)
		one, err := w.Provider.GetRefund(t.Context(), Tenant, id)
		if err != nil || one.GetStatus() != status {
			t.Errorf("%s: refund %v, %v", word, one, err)
		}
		if listed := w.refunds(t, "8472"); len(listed) != 1 || listed[0].GetStatus() != status {
			t.Errorf("%s: listed %v", word, listed)
		}
	}
}

func tenants(t *testing.T, w World) {
	w.Load(Paid("8472", inr(200000), 2, w.Now()))
	id := w.made(t, Ask("8472", "key", inr(200000)))
	for what, err := range map[string]error{
		"order of another tenant":  second(w.Provider.ReadOrder(t.Context(), "globex", "8472")),
		"unknown order":            second(w.Provider.ReadOrder(t.Context(), Tenant, "9999")),
		"refund of another tenant": second(w.Provider.GetRefund(t.Context(), "globex", id)),
		"unknown refund":           second(w.Provider.GetRefund(t.Context(), Tenant, "rf_0")),
	} {
		if !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := Ask("8472", "other-key", inr(1))
	other.Tenant = "globex"
	want(t, "in another tenant", w.create(t, other), amendsv1.EffectClass_EFFECT_CLASS_REFUSED, "")
}

func second[T any](_ T, err error) error { return err }
