package sandbox

import (
	"fmt"
	"net/http"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

// resolve checks a ledger part against itself and the book, and fills in the
// tenants and orders it left out. The caller holds the lock.
func (b *book) resolve(l Ledger) (Ledger, error) {
	r := resolver{book: b, orders: map[id]bool{}, payments: map[id]string{}, byOrder: map[string][]string{}, byPayment: map[string][]string{}}
	var out Ledger
	for i, o := range l.Orders {
		if err := r.order(o); err != nil {
			return Ledger{}, invalidLedger("orders", i, err)
		}
		o.PlacedAt = o.PlacedAt.UTC()
		out.Orders = append(out.Orders, o)
	}
	for i, c := range l.Captures {
		if err := r.capture(&c); err != nil {
			return Ledger{}, invalidLedger("captures", i, err)
		}
		out.Captures = append(out.Captures, c)
	}
	refunds, disputes := map[string]bool{}, map[string]bool{}
	for i, f := range l.Refunds {
		err := f.validate()
		if err == nil {
			err = unique(refunds, f.RefundID)
		}
		if err == nil {
			err = r.owner(f.PaymentID, &f.Tenant, &f.OrderID)
		}
		if at, known := b.refunds[f.RefundID]; err == nil && known && at != (id{f.Tenant, f.OrderID}) {
			err = fmt.Errorf("refund %s belongs to another order", f.RefundID)
		}
		if err != nil {
			return Ledger{}, invalidLedger("refunds", i, err)
		}
		f.CreatedAt = f.CreatedAt.UTC()
		out.Refunds = append(out.Refunds, f)
	}
	for i, d := range l.Disputes {
		err := d.validate()
		if err == nil {
			err = unique(disputes, d.DisputeID)
		}
		if err == nil {
			err = r.owner(d.PaymentID, &d.Tenant, &d.OrderID)
		}
		if err != nil {
			return Ledger{}, invalidLedger("disputes", i, err)
		}
		out.Disputes = append(out.Disputes, d)
	}
	return out, nil
}

func invalidLedger(list string, i int, err error) error {
	return &problem{status: http.StatusUnprocessableEntity, code: codeLedgerInvalid, detail: fmt.Sprintf("%s[%d]: %v", list, i, err)}
}

func unique(seen map[string]bool, key string) error {
	if seen[key] {
		return fmt.Errorf("%s is given twice", key)
	}
	seen[key] = true
	return nil
}

// resolver knows what the document says, before the book is asked.
type resolver struct {
	book     *book
	orders   map[id]bool
	payments map[id]string
	// tenants by bare order id and payment id
	byOrder, byPayment map[string][]string
}

func (r *resolver) order(o Order) error {
	if err := o.validate(); err != nil {
		return err
	}
	at := id{o.Tenant, o.OrderID}
	if r.orders[at] {
		return fmt.Errorf("order %s is given twice", o.OrderID)
	}
	r.orders[at] = true
	r.byOrder[o.OrderID] = append(r.byOrder[o.OrderID], o.Tenant)
	return nil
}

func (r *resolver) capture(c *Capture) error {
	if err := c.validate(); err != nil {
		return err
	}
	if err := onlyTenant(&c.Tenant, r.byOrder[c.OrderID]); err != nil {
		return err
	}
	at := id{c.Tenant, c.OrderID}
	if _, known := r.book.accounts[at]; !known && !r.orders[at] {
		return fmt.Errorf("order %s is unknown", c.OrderID)
	}
	payment := id{c.Tenant, c.PaymentID}
	if _, twice := r.payments[payment]; twice {
		return fmt.Errorf("payment %s is given twice", c.PaymentID)
	}
	if order, known := r.book.payments[payment]; known && order != c.OrderID {
		return fmt.Errorf("payment %s belongs to another order", c.PaymentID)
	}
	r.payments[payment] = c.OrderID
	r.byPayment[c.PaymentID] = append(r.byPayment[c.PaymentID], c.Tenant)
	c.CapturedAt, c.SettledAt = utc(c.CapturedAt), utc(c.SettledAt)
	return nil
}

// owner fills in whose payment it is, and refuses a statement that differs.
func (r *resolver) owner(payment string, tenant, order *string) error {
	if err := onlyTenant(tenant, r.byPayment[payment]); err != nil {
		return err
	}
	of, known := r.payments[id{*tenant, payment}]
	if !known {
		of, known = r.book.payments[id{*tenant, payment}]
	}
	if !known {
		return fmt.Errorf("payment %s is unknown", payment)
	}
	if *order != "" && *order != of {
		return fmt.Errorf("payment %s belongs to another order", payment)
	}
	*order = of
	return nil
}

func onlyTenant(tenant *string, candidates []string) error {
	if *tenant == "" {
		if len(candidates) != 1 {
			return fmt.Errorf("tenant is missing and the document has %d candidates", len(candidates))
		}
		*tenant = candidates[0]
	}
	return ident.Tokens("tenant", *tenant)
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
