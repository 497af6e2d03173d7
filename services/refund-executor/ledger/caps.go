package ledger

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// MaxReservations bounds a tenant's cap window.
const MaxReservations = 2048

const (
	// bookingKeeps is how long a reservation serves the same refund again
	// without being moved forward: a call may be that much younger than its
	// reservation, so the windows are that much longer.
	bookingKeeps = time.Minute
	hourly       = time.Hour + bookingKeeps
	daily        = 24*time.Hour + bookingKeeps
)

// Limits are the executor's own limits in one currency, in minor units.
type Limits struct {
	Currency string
	// Approval and Second are inclusive: at them one and two people are needed.
	Approval, Second int64
	// PerRefund and PerOrder (over 30 days) bound what nobody approved,
	// inclusive, besides the approval threshold.
	PerRefund, PerOrder int64
	// TenantHour and TenantDay bound what nobody approved, inclusive.
	TenantHour, TenantDay int64
}

// Policy is the limits of every currency the executor may refund in without
// a person. Any other currency always needs one.
type Policy []Limits

func (p Policy) find(code string) (Limits, bool) {
	for _, l := range p {
		if l.Currency == code {
			return l, true
		}
	}
	return Limits{}, false
}

// Approvers gives how many different people must approve, for the sum of an
// order's recent refunds.
func (p Policy) Approvers(sum *amendsv1.Money) int {
	l, ok := p.find(sum.GetCurrency())
	switch {
	case !ok:
		return 1
	case sum.GetMinor() >= l.Second:
		return 2
	case sum.GetMinor() >= l.Approval:
		return 1
	}
	return 0
}

// Reserve books the open refunds of an unapproved action in the tenant's
// window, once a key, and refuses what would pass a cap. recent is the
// admission's sum. It gives nil when all are booked already. A booking is not
// taken back when the refund is not made: a crash wastes a part of the cap and
// never lifts it.
func (p Policy) Reserve(w *amendsv1.CapWindow, tenant string, positions []Position, recent *amendsv1.Money, at time.Time) (*amendsv1.CapWindow, error) {
	l, ok := p.find(recent.GetCurrency())
	if !ok {
		return nil, Refuse(ReasonApprovalMissing, "no limits in %s", recent.GetCurrency())
	}
	if recent.GetMinor() > l.PerOrder {
		return nil, Refuse(ReasonCapOrder, "%d in 30 days, cap %d", recent.GetMinor(), l.PerOrder)
	}
	n := &amendsv1.CapWindow{Tenant: tenant, Revision: w.GetRevision() + 1}
	for _, r := range w.GetReservations() {
		if at.Sub(r.GetAt().AsTime()) < daily {
			n.Reservations = append(n.Reservations, r)
		}
	}
	changed := false
	for _, pos := range positions {
		if !pos.Open() {
			continue
		}
		if m := pos.Refund.GetAmount(); m.GetMinor() > l.PerRefund {
			return nil, Refuse(ReasonCapRefund, "%d asked, cap %d", m.GetMinor(), l.PerRefund)
		}
		changed = book(n, pos.Refund, at) || changed
	}
	if !changed {
		return nil, nil
	}
	if err := l.checkWindow(n, at); err != nil {
		return nil, err
	}
	return n, nil
}

// book adds a reservation, unless the key has a recent one for as much. Two
// may be at work under one key: a reservation moves forward in time and up in
// amount, never back.
func book(w *amendsv1.CapWindow, r *amendsv1.ActionRefund, at time.Time) bool {
	amount := r.GetAmount()
	for i, have := range w.GetReservations() {
		if have.GetIdempotencyKey() != r.GetIdempotencyKey() || have.GetAmount().GetCurrency() != amount.GetCurrency() {
			continue
		}
		if have.GetAmount().GetMinor() >= amount.GetMinor() {
			if at.Sub(have.GetAt().AsTime()) < bookingKeeps {
				return false
			}
			amount = have.GetAmount()
		}
		w.Reservations = append(w.Reservations[:i:i], w.Reservations[i+1:]...)
		break
	}
	w.Reservations = append(w.Reservations, &amendsv1.CapReservation{IdempotencyKey: r.GetIdempotencyKey(), Amount: amount, At: timestamppb.New(at)})
	return true
}

func (l Limits) checkWindow(w *amendsv1.CapWindow, at time.Time) error {
	var hour, day int64
	for _, r := range w.GetReservations() {
		if r.GetAmount().GetCurrency() != l.Currency {
			continue
		}
		day += r.GetAmount().GetMinor()
		if at.Sub(r.GetAt().AsTime()) < hourly {
			hour += r.GetAmount().GetMinor()
		}
	}
	switch {
	case hour > l.TenantHour:
		return Refuse(ReasonCapHour, "%d in an hour, cap %d", hour, l.TenantHour)
	case day > l.TenantDay:
		return Refuse(ReasonCapDay, "%d in a day, cap %d", day, l.TenantDay)
	case len(w.GetReservations()) > MaxReservations || proto.Size(w) > MaxBytes:
		return Refuse(ReasonCapFull, "%d reservations", len(w.GetReservations()))
	}
	return nil
}
