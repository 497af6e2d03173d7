package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amends-dev/amends/internal/allinone"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/deskclient"
	"github.com/amends-dev/amends/internal/sandbox"
)

// book makes the ledger of one order, settled payments five seconds apart.
type book struct {
	sandbox.Ledger
	id     string
	placed time.Time
}

func newBook(id string, total int64, currency string, daysAgo int, amounts ...int64) *book {
	b := &book{id: id, placed: time.Now().Add(-time.Duration(daysAgo) * 24 * time.Hour).UTC().Truncate(time.Second)}
	b.Orders = []sandbox.Order{{OrderID: id, Tenant: allinone.Tenant, CustomerID: allinone.Customer, TotalMinor: total, Currency: currency, PlacedAt: b.placed}}
	for i, a := range amounts {
		at, settled := b.placed.Add(time.Duration(5*i+2)*time.Second), b.placed.Add(17*time.Hour)
		b.Captures = append(b.Captures, sandbox.Capture{
			PaymentID: b.payment(i), OrderID: id, Tenant: allinone.Tenant, AmountMinor: a, Currency: currency,
			Status: "settled", Captured: true, Settled: true, CapturedAt: &at, SettledAt: &settled, Method: "card_visa_4417",
		})
	}
	return b
}

func (b *book) payment(i int) string { return "pay_" + b.id + "_" + string(rune('a'+i)) }

func (b *book) hold(i int) *book {
	c := &b.Captures[i]
	c.Status, c.Captured, c.Settled, c.CapturedAt, c.SettledAt = "authorized", false, false, nil, nil
	return b
}

func (b *book) refunded(i int, minor int64, status string) *book {
	b.Refunds = append(b.Refunds, sandbox.Refund{
		RefundID: "rf_old" + b.id, Tenant: allinone.Tenant, OrderID: b.id, PaymentID: b.payment(i), AmountMinor: minor,
		Currency: b.Orders[0].Currency, Status: status, CreatedAt: b.placed.Add(20 * time.Hour),
	})
	return b
}

func (b *book) disputed(i int) *book {
	b.Disputes = append(b.Disputes, sandbox.Dispute{DisputeID: "dp_" + b.id, Tenant: allinone.Tenant, PaymentID: b.payment(i), Status: "open"})
	return b
}

func (b *book) method(i int, name string) *book {
	b.Captures[i].Method = name
	return b
}

// Every way a case can end on its own, through the whole desk: the state, the
// refunds, and a reply that composer and verifier agree on. The M numbers are
// those of the message cases with the same situation.
func TestEndings(t *testing.T) {
	t.Parallel()
	w := start(t, allinone.Options{NoSync: true})
	type ending struct {
		name    string
		book    *book
		message string // %s is the order
		state   string
		kind    string
		refunds []int // which payments are refunded
		says    []string
	}
	const twice = "Order %s was charged twice, please refund one."
	cases := []ending{
		{"M04 below the threshold", newBook("9004", 99999, "INR", 2, 99999, 99999), twice, "VERIFIED_CLOSED", "refunded", []int{1}, []string{"₹999.99", "pending"}},
		{"M06 one payment", newBook("9006", 200000, "INR", 2, 200000), twice, "VERIFIED_CLOSED", "explain", nil, []string{"₹2,000.00"}},
		{"one hold alone", newBook("9007", 200000, "INR", 2, 200000).hold(0), twice, "VERIFIED_CLOSED", "explain", nil, []string{"hold"}},
		{"M08 no such order", newBook("9008", 200000, "INR", 2, 200000, 200000), "you double charged me on order 9080", "AWAITING_CUSTOMER", "clarify", nil, []string{"order number"}},
		{"M10 lakh grouping", newBook("9010", 10000000, "INR", 2, 10000000, 10000000), twice, "VERIFIED_CLOSED", "refunded", []int{1}, []string{"₹1,00,000.00"}},
		{"unrecognised charge", newBook("9013", 249900, "INR", 2, 249900), "WHO took ₹2,499 off my card? I never ordered anything, this is fraud", "HUMAN_HANDOFF", "handoff", nil, nil},
		{"M21 already refunded", newBook("9021", 200000, "INR", 2, 200000, 200000).refunded(0, 200000, "succeeded"), twice, "VERIFIED_CLOSED", "explain", nil, []string{"rf_old9021"}},
		{"M22 pending at the bank", newBook("9022", 200000, "INR", 2, 200000, 200000).refunded(1, 200000, "pending"), "where is my refund for order %s? it said refunded 2 days ago", "VERIFIED_CLOSED", "explain", nil, []string{"rf_old9022", "pending"}},
		{"M23 three payments", newBook("9023", 200000, "INR", 2, 200000, 200000, 200000), "order %s got charged THREE times!", "VERIFIED_CLOSED", "refunded", []int{1, 2}, []string{"pending"}},
		{"M24 partial refund", newBook("9024", 500000, "INR", 2, 500000, 500000).refunded(1, 50000, "succeeded"), twice, "HUMAN_HANDOFF", "handoff", nil, []string{"₹500.00"}},
		{"M25 split tender", newBook("9025", 300000, "INR", 2, 100000, 200000).method(0, "giftcard_77"), twice, "VERIFIED_CLOSED", "explain", nil, []string{"₹1,000.00", "₹2,000.00", "₹3,000.00", "gift card"}},
		{"M26 outside the window", newBook("9026", 200000, "INR", 32, 200000, 200000), twice, "VERIFIED_CLOSED", "explain", nil, []string{"30 days"}},
		{"M27 zero-decimal currency", newBook("9027", 50000, "JPY", 2, 50000, 50000), twice, "VERIFIED_CLOSED", "refunded", []int{1}, []string{"¥50,000"}},
		{"M28 zero amounts", newBook("9028", 0, "INR", 2, 0, 0), twice, "VERIFIED_CLOSED", "explain", nil, nil},
		{"card number in the message", newBook("9030", 99999, "INR", 2, 99999, 99999), "Order %s was charged twice on my card 4111 1111 1111 1111, OTP 493021", "VERIFIED_CLOSED", "refunded", []int{1}, []string{"card"}},
		{"open dispute", newBook("9029", 200000, "INR", 2, 200000, 200000).disputed(0), twice, "HUMAN_HANDOFF", "handoff", nil, nil},
	}
	for i := range cases {
		if err := w.Provider.Load(w.ctx, cases[i].book.Ledger); err != nil {
			t.Fatal(err)
		}
	}
	w.each(len(cases), 8, func(i int) error {
		c := cases[i]
		id := "req-" + c.book.id
		if _, err := w.gateway.Post(w.ctx, deskclient.Post{Key: id, CaseID: id, Message: strings.ReplaceAll(c.message, "%s", c.book.id)}); err != nil {
			return err
		}
		number, err := strconv.Atoi(c.book.id)
		if err != nil {
			return err
		}
		v, err := w.finish(number-8472, func(v deskapi.View) bool { return len(v.Replies) > 0 && v.State == c.state || v.Closed })
		if err != nil {
			return err
		}
		if v.State != c.state || len(v.Replies) != 1 || v.Replies[0].Kind != c.kind {
			t.Errorf("%s: ended %s with %+v, want %s and a %s reply", c.name, v.State, v.Replies, c.state, c.kind)
			return nil
		}
		for _, words := range c.says {
			if !strings.Contains(v.Replies[0].Text, words) {
				t.Errorf("%s: the reply does not say %q: %s", c.name, words, v.Replies[0].Text)
			}
		}
		if strings.Contains(v.Replies[0].Text, "1111") || strings.Contains(v.Replies[0].Text, "pay_") || strings.Contains(v.Replies[0].Text, "4417") {
			t.Errorf("%s: the reply shows a payment identifier: %s", c.name, v.Replies[0].Text)
		}
		return nil
	})
	w.nothingStored("4111 1111 1111 1111", "493021")
	made := w.refunds()
	for _, c := range cases {
		for _, old := range c.book.Refunds {
			delete(made, old.PaymentID)
		}
		for _, p := range c.refunds {
			if r, ok := made[c.book.payment(p)]; !ok || r.AmountMinor != c.book.Captures[p].AmountMinor {
				t.Errorf("%s: payment %s was not refunded in full: %+v", c.name, c.book.payment(p), r)
			}
			delete(made, c.book.payment(p))
		}
	}
	for payment := range made {
		t.Errorf("MONEY-4: payment %s was refunded and should not have been", payment)
	}
	w.noDeadLetters()
}
