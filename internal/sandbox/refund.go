package sandbox

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const refundPrefix = "rf_"

// keyID is what an idempotency key is scoped by: the API key and the tenant.
type keyID struct{ apiKey, tenant, key string }

// keyUse is what a key was used for.
type keyUse struct {
	body   [sha256.Size]byte
	refund Refund // as it was created
	at     time.Time
	seq    uint64 // the journal entry that holds it
}

// keyring remembers used keys for a window and then forgets them.
type keyring struct {
	window time.Duration
	uses   map[keyID]keyUse
	queue  []keyAge // in the order of use
}

type keyAge struct {
	key keyID
	at  time.Time
}

func (k *keyring) bind(key keyID, use keyUse) {
	k.forget(use.at)
	k.uses[key] = use
	k.queue = append(k.queue, keyAge{key, use.at})
}

// known gives the use of a key that is inside its window.
func (k *keyring) known(key keyID, now time.Time) (keyUse, bool) {
	use, ok := k.uses[key]
	return use, ok && now.Sub(use.at) < k.window
}

func (k *keyring) forget(now time.Time) {
	for len(k.queue) > 0 && now.Sub(k.queue[0].at) >= k.window {
		old := k.queue[0]
		k.queue = k.queue[1:]
		if k.uses[old.key].at.Equal(old.at) { // else it is in use again
			delete(k.uses, old.key)
		}
	}
}

// refundRequest is the body of POST /v1/refunds.
type refundRequest struct {
	Tenant      string `json:"tenant"`
	OrderID     string `json:"order_id"`
	PaymentID   string `json:"payment_id"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	Reference   string `json:"reference"`
	Reason      string `json:"reason"`
}

// oddities are what faults change about a creation.
type oddities interface {
	// keeps reports whether the request's key is kept.
	keeps() bool
	// forgets reports whether a key of an age is forgotten within its window.
	forgets(age time.Duration) bool
	// stamp gives the time the refund is said to be made at.
	stamp(now time.Time) time.Time
}

// create makes a refund, or gives the one the key has already made, as
// it was then. The sequence number is the entry that holds it. Whether a key is
// known is told by the true time, whatever the provider's clock says.
func (b *book) create(req refundRequest, apiKey, key string, body [sha256.Size]byte, now time.Time, odd oddities) (r Refund, seq uint64, replayed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noKeys || !odd.keeps() {
		key = ""
	} else if use, ok := b.keys.known(keyID{apiKey, req.Tenant, key}, now); ok && !odd.forgets(now.Sub(use.at)) {
		if use.body != body {
			return Refund{}, 0, false, &problem{status: http.StatusConflict, code: codeKeyReused}
		}
		return use.refund, use.seq, true, nil
	}
	if err := b.refundable(req); err != nil {
		return Refund{}, 0, false, err
	}
	r = Refund{
		RefundID: b.freeRefundID(), Tenant: req.Tenant, OrderID: req.OrderID, PaymentID: req.PaymentID,
		AmountMinor: req.AmountMinor, Currency: req.Currency, Status: statusPending,
		Reference: req.Reference, Reason: req.Reason, CreatedAt: odd.stamp(now).UTC(),
	}
	err = b.commit(entry{At: now, Created: &created{Refund: r, APIKey: apiKey, Key: key, Body: body[:]}})
	return r, b.seq, false, err
}

func (b *book) freeRefundID() string {
	for n := b.next; ; n++ {
		name := refundPrefix + strconv.FormatInt(n, 10)
		if _, taken := b.refunds[name]; !taken {
			return name
		}
	}
}

// refundable says why a refund may not be made now, or nil.
func (b *book) refundable(req refundRequest) error {
	a := b.accounts[id{req.Tenant, req.OrderID}]
	if a == nil {
		return notFound(codeOrderNotFound)
	}
	i := slices.IndexFunc(a.captures, func(c Capture) bool { return c.PaymentID == req.PaymentID })
	if i < 0 {
		return notFound(codePaymentNotFound)
	}
	c := a.captures[i]
	disputed := slices.ContainsFunc(a.disputes, func(d Dispute) bool { return d.PaymentID == c.PaymentID && d.blocks() })
	switch {
	case req.AmountMinor <= 0:
		return unprocessable(codeAmountNotPositive)
	case req.Currency != c.Currency:
		return unprocessable(codeCurrencyMismatch)
	case disputed:
		return unprocessable(codeDisputed)
	case !c.Captured || !c.Settled || c.Status != statusSettled:
		return unprocessable(codeNotRefundable)
	case req.AmountMinor > a.remaining(c):
		return unprocessable(codeExceedsRemaining)
	}
	return nil
}

// remaining is what is left on a capture; below zero when the ledger was
// loaded so.
func (a *account) remaining(c Capture) int64 {
	left := c.AmountMinor
	for _, r := range a.refunds {
		if r.PaymentID == c.PaymentID && r.counts() {
			left -= r.AmountMinor
		}
	}
	return left
}

// setStatus moves a refund to a status, known or not. A failed refund may
// come back only while there is room for it on its capture.
func (b *book) setStatus(refundID, status string, now time.Time) (Refund, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[b.refunds[refundID]]
	if a == nil {
		return Refund{}, 0, notFound(codeRefundNotFound)
	}
	r, _ := a.refund(refundID)
	next := r
	next.Status = status
	if !r.counts() && next.counts() {
		i := slices.IndexFunc(a.captures, func(c Capture) bool { return c.PaymentID == r.PaymentID })
		if r.AmountMinor > a.remaining(a.captures[i]) {
			return Refund{}, 0, unprocessable(codeExceedsRemaining)
		}
	}
	if err := b.commit(entry{At: now, Changed: &changed{RefundID: refundID, Status: status}}); err != nil {
		return Refund{}, 0, err
	}
	return next, b.seq, nil
}

// setCapture moves a payment to a status, as a bank does over the days.
func (b *book) setCapture(tenant, paymentID, status string, now, stamp time.Time) (Capture, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[id{tenant, b.payments[id{tenant, paymentID}]}]
	if a == nil {
		return Capture{}, 0, notFound(codePaymentNotFound)
	}
	i := slices.IndexFunc(a.captures, func(c Capture) bool { return c.PaymentID == paymentID })
	if i < 0 {
		return Capture{}, 0, notFound(codePaymentNotFound)
	}
	next, at := a.captures[i], stamp.UTC()
	next.Status = status
	switch status {
	case statusSettled:
		next.Captured, next.Settled, next.SettledAt = true, true, &at
		if next.CapturedAt == nil {
			next.CapturedAt = &at
		}
	case statusCaptured:
		next.Captured, next.CapturedAt = true, &at
	case statusExpired:
		next.Captured, next.Settled, next.CapturedAt, next.SettledAt = false, false, nil, nil
	}
	err := b.commit(entry{At: now, Ledger: &Ledger{Captures: []Capture{next}}})
	return next, b.seq, err
}
