package sandbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// id names an order or a payment; both belong to a tenant.
type id struct{ tenant, id string }

// account is one order with everything on it. It is immutable: a change puts
// a new account in its place, so a reader may keep it without the lock.
type account struct {
	order    Order
	captures []Capture
	refunds  []Refund
	disputes []Dispute
	// revision is the journal's sequence number of its last change.
	revision uint64
}

// book is the state of the sandbox: what the journal says.
type book struct {
	journal *journal

	mu       sync.RWMutex
	seq      uint64
	accounts map[id]*account
	payments map[id]string // the order id of a payment
	refunds  map[string]id // the order of a refund
	// byTenant has the refund ids of a tenant in the order of the journal.
	byTenant map[string][]string
	keys     keyring
	// noKeys: keys are not kept.
	noKeys bool
	// next is the number the next refund id is tried with.
	next int64
	// notify is told what each commit changed.
	notify func(seq uint64, changes []change)
}

// entry is one line of the journal; exactly one of its facts is set.
type entry struct {
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	// Ledger was merged; every tenant and order in it is filled in.
	Ledger *Ledger `json:"ledger,omitempty"`
	// Created is a refund as it was made, with the key that made it.
	Created *created `json:"created,omitempty"`
	Changed *changed `json:"changed,omitempty"`
}

type created struct {
	Refund Refund `json:"refund"`
	APIKey string `json:"api_key"`
	// Key is empty where none was kept.
	Key string `json:"idempotency_key"`
	// Body is the SHA-256 of the request's bytes.
	Body []byte `json:"body_sha256"`
}

type changed struct {
	RefundID string `json:"refund_id"`
	Status   string `json:"status"`
}

func openBook(c Config) (*book, error) {
	b := &book{
		accounts: map[id]*account{}, payments: map[id]string{}, refunds: map[string]id{}, byTenant: map[string][]string{},
		keys: keyring{window: c.KeyWindow, uses: map[keyID]keyUse{}}, noKeys: c.NoKeys, next: c.FirstRefund,
	}
	j, torn, err := openJournal(c.File, c.Sync, b.replay)
	if err != nil {
		return nil, err
	}
	if torn > 0 {
		c.Log.Warn("journal ended in a torn line, dropped", slog.Int64("bytes", torn))
	}
	b.journal = j
	b.keys.forget(c.Now())
	return b, nil
}

// replay applies a line of the journal and gives its sequence number.
func (b *book) replay(line []byte) (uint64, error) {
	var e entry
	if err := decode(line, &e); err != nil {
		return 0, err
	}
	_, known := b.refunds[e.changedRefund()]
	switch {
	case e.Seq != b.seq+1:
		return 0, fmt.Errorf("entry %d follows entry %d", e.Seq, b.seq)
	case e.Created != nil && (len(e.Created.Body) != sha256.Size || !strings.HasPrefix(e.Created.Refund.RefundID, refundPrefix)):
		return 0, fmt.Errorf("entry %d: not a refund made here", e.Seq)
	case e.Changed != nil && !known:
		return 0, fmt.Errorf("entry %d: unknown refund", e.Seq)
	}
	b.apply(e)
	return e.Seq, nil
}

func (e entry) changedRefund() string {
	if e.Changed == nil {
		return ""
	}
	return e.Changed.RefundID
}

// commit writes an entry and then applies it. The caller holds the lock.
func (b *book) commit(e entry) error {
	e.Seq, e.At = b.seq+1, e.At.UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode journal entry: %w", err)
	}
	if err := b.journal.append(append(line, '\n'), e.Seq); err != nil {
		return err
	}
	before := b.touched(e)
	b.apply(e)
	var told []change
	for _, at := range slices.SortedFunc(maps.Keys(before), func(x, y id) int {
		return cmp.Or(cmp.Compare(x.tenant, y.tenant), cmp.Compare(x.id, y.id))
	}) {
		told = append(told, changes(before[at], b.accounts[at], e.At)...)
	}
	if len(told) > 0 && b.notify != nil {
		b.notify(e.Seq, told)
	}
	return nil
}

// touched gives the orders an entry is about, as they are.
func (b *book) touched(e entry) map[id]*account {
	out := map[id]*account{}
	add := func(tenant, order string) { out[id{tenant, order}] = b.accounts[id{tenant, order}] }
	switch {
	case e.Created != nil:
		add(e.Created.Refund.Tenant, e.Created.Refund.OrderID)
	case e.Changed != nil:
		at := b.refunds[e.Changed.RefundID]
		add(at.tenant, at.id)
	case e.Ledger != nil:
		for _, c := range e.Ledger.Captures {
			add(c.Tenant, c.OrderID)
		}
		for _, r := range e.Ledger.Refunds {
			add(r.Tenant, r.OrderID)
		}
		for _, d := range e.Ledger.Disputes {
			add(d.Tenant, d.OrderID)
		}
	}
	return out
}

// apply is the only place where the state changes; it cannot fail, for what
// is in the journal has been accepted.
func (b *book) apply(e entry) {
	b.seq = e.Seq
	switch {
	case e.Ledger != nil:
		b.merge(*e.Ledger)
	case e.Created != nil:
		r := e.Created.Refund
		b.putRefund(r)
		if e.Created.Key != "" {
			b.keys.bind(keyID{e.Created.APIKey, r.Tenant, e.Created.Key}, keyUse{body: [sha256.Size]byte(e.Created.Body), refund: r, at: e.At, seq: e.Seq})
		}
		if n, err := strconv.ParseInt(strings.TrimPrefix(r.RefundID, refundPrefix), 10, 64); err == nil && n >= b.next {
			b.next = n + 1
		}
	case e.Changed != nil:
		at := b.refunds[e.Changed.RefundID]
		for _, r := range b.accounts[at].refunds {
			if r.RefundID == e.Changed.RefundID {
				r.Status = e.Changed.Status
				b.putRefund(r)
			}
		}
	}
}

func (b *book) merge(l Ledger) {
	for _, o := range l.Orders {
		b.change(id{o.Tenant, o.OrderID}, func(a *account) { a.order = o })
	}
	for _, c := range l.Captures {
		b.payments[id{c.Tenant, c.PaymentID}] = c.OrderID
		b.change(id{c.Tenant, c.OrderID}, func(a *account) {
			a.captures = put(a.captures, c, func(x Capture) bool { return x.PaymentID == c.PaymentID })
		})
	}
	for _, r := range l.Refunds {
		b.putRefund(r)
	}
	for _, d := range l.Disputes {
		b.change(id{d.Tenant, d.OrderID}, func(a *account) {
			a.disputes = put(a.disputes, d, func(x Dispute) bool { return x.DisputeID == d.DisputeID })
		})
	}
}

func (b *book) putRefund(r Refund) {
	at := id{r.Tenant, r.OrderID}
	if _, known := b.refunds[r.RefundID]; !known {
		b.byTenant[r.Tenant] = append(b.byTenant[r.Tenant], r.RefundID)
	}
	b.refunds[r.RefundID] = at
	b.change(at, func(a *account) {
		a.refunds = put(a.refunds, r, func(x Refund) bool { return x.RefundID == r.RefundID })
	})
}

func (b *book) change(at id, edit func(*account)) {
	var next account
	if a := b.accounts[at]; a != nil {
		next = *a
	}
	edit(&next)
	next.revision = b.seq
	b.accounts[at] = &next
}

// put gives a copy of list with item in place of its like, or at the end.
func put[T any](list []T, item T, same func(T) bool) []T {
	out := make([]T, len(list), len(list)+1)
	copy(out, list)
	if i := slices.IndexFunc(out, same); i >= 0 {
		out[i] = item
		return out
	}
	return append(out, item)
}

// account gives an order of a tenant, or nil.
func (b *book) account(tenant, order string) *account {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.accounts[id{tenant, order}]
}

// refund gives a refund of a tenant and the revision of its order.
func (b *book) refund(tenant, refundID string) (Refund, uint64, bool) {
	b.mu.RLock()
	at, ok := b.refunds[refundID]
	a := b.accounts[at]
	b.mu.RUnlock()
	if !ok || at.tenant != tenant {
		return Refund{}, 0, false
	}
	r, ok := a.refund(refundID)
	return r, a.revision, ok
}

func (a *account) refund(refundID string) (Refund, bool) {
	for _, r := range a.refunds {
		if r.RefundID == refundID {
			return r, true
		}
	}
	return Refund{}, false
}

// ledger gives everything, in the order of tenant and order id, and the
// sequence number it stands at.
func (b *book) ledger() (Ledger, uint64) {
	b.mu.RLock()
	all, seq := slices.Collect(maps.Values(b.accounts)), b.seq
	b.mu.RUnlock()
	slices.SortFunc(all, func(x, y *account) int {
		return cmp.Or(cmp.Compare(x.order.Tenant, y.order.Tenant), cmp.Compare(x.order.OrderID, y.order.OrderID))
	})
	out := Ledger{Orders: []Order{}, Captures: []Capture{}, Refunds: []Refund{}, Disputes: []Dispute{}}
	for _, a := range all {
		out.Orders = append(out.Orders, a.order)
		out.Captures = append(out.Captures, a.captures...)
		out.Refunds = append(out.Refunds, a.refunds...)
		out.Disputes = append(out.Disputes, a.disputes...)
	}
	return out, seq
}

// load merges a part of a ledger, all of it or nothing.
func (b *book) load(l Ledger, now time.Time) (Ledger, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	resolved, err := b.resolve(l)
	if err != nil {
		return Ledger{}, 0, err
	}
	if err := b.commit(entry{At: now, Ledger: &resolved}); err != nil {
		return Ledger{}, 0, err
	}
	return resolved, b.seq, nil
}
