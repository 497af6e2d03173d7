package ledger

import (
	"time"

	"github.com/amends-dev/amends/internal/approval"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Slices is the time over which the refunds of an order count together: small
// ones do not slip under the approval threshold.
const Slices = 30 * 24 * time.Hour

// KindGoodwill is the kind of refund that may take an order below its total,
// when people approved it. Every other kind gives back an excess.
const KindGoodwill = approval.KindGoodwill

// View is one order as the provider showed it at one moment.
type View struct {
	Tenant string
	// Order is nil when the provider has none.
	Order    *amendsv1.Order
	Captures []*amendsv1.Capture
	Refunds  []*amendsv1.Refund
	Disputes []*amendsv1.Dispute
}

// Question asks whether the open refunds of an action may be made now.
type Question struct {
	Entry     *amendsv1.EffectEntry
	View      View
	Action    *amendsv1.ActionRecord
	Positions []Position
	// Approved: at least one person validly approved exactly this action.
	Approved bool
	At       time.Time
}

// Admission is what an admitted action adds up to.
type Admission struct {
	// Recent is the sum of the order's refunds in the last 30 days, this
	// action included: what the approval threshold compares. Ours are as old as
	// the later of the two sides says.
	Recent *amendsv1.Money
}

// Admit decides MONEY-1 and MONEY-4 for an action, from the order as it is now
// and everything the entry has begun.
func Admit(q Question) (Admission, error) {
	a := q.Action
	switch {
	case q.View.Order == nil:
		return Admission{}, Refuse(ReasonOrderUnknown, "the provider has no such order")
	case subject.ReservedOrder(a.GetOrderId()):
		return Admission{}, Refuse(ReasonReservedOrder, "order id %q is reserved", a.GetOrderId())
	case q.View.Tenant != a.GetTenant() || q.View.Order.GetOrderId() != a.GetOrderId():
		return Admission{}, Refuse(ReasonOrderMismatch, "the provider answered for another order")
	}
	acc, err := q.account()
	if err != nil {
		return Admission{}, err
	}
	gives, goodwill := int64(0), true
	for _, p := range q.Positions {
		if !p.Open() {
			continue
		}
		if err := acc.carries(p.Refund); err != nil {
			return Admission{}, err
		}
		gives += p.Refund.GetAmount().GetMinor()
		goodwill = goodwill && p.Refund.GetKind() == KindGoodwill
	}
	total := q.View.Order.GetTotal().GetMinor()
	if kept := acc.settled - acc.refunded - gives; kept < total && (!goodwill || !q.Approved) {
		return Admission{}, Refuse(ReasonNotOverpaid, "the order would be paid with %d of %d", kept, total)
	}
	return Admission{Recent: &amendsv1.Money{Minor: acc.recent + gives, Currency: acc.code}}, nil
}

// carries checks that one capture is refundable and has room.
func (acc *account) carries(r *amendsv1.ActionRefund) error {
	c := acc.captures[r.GetPaymentId()]
	switch {
	case r.GetAmount().GetCurrency() != acc.code:
		return Refuse(ReasonCurrency, "refund in %s, order in %s", r.GetAmount().GetCurrency(), acc.code)
	case c == nil:
		return Refuse(ReasonPaymentUnknown, "payment %s is not on the order", r.GetPaymentId())
	case !c.GetCaptured() || !c.GetSettled():
		return Refuse(ReasonNotSettled, "payment %s is not captured and settled", r.GetPaymentId())
	case acc.charged[r.GetPaymentId()]:
		return Refuse(ReasonDisputed, "payment %s was charged back", r.GetPaymentId())
	case r.GetAmount().GetMinor() > c.GetAmount().GetMinor()-acc.taken[r.GetPaymentId()]:
		return Refuse(ReasonExceedsCaptured, "%d refunded or under way of %d captured on %s, %d asked",
			acc.taken[r.GetPaymentId()], c.GetAmount().GetMinor(), r.GetPaymentId(), r.GetAmount().GetMinor())
	}
	return nil
}
