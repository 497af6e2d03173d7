package ledger

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// account adds up one order, in minor units of its currency: what the provider
// shows and what the entry has begun, each refund once.
type account struct {
	code     string
	captures map[string]*amendsv1.Capture
	// charged are payments that a lost dispute took back.
	charged map[string]bool
	settled int64
	// taken is refunded or under way, per payment and for the order; the open
	// refunds of the action in question are not in it.
	taken    map[string]int64
	refunded int64
	// recent is the part of refunded within Slices of the question.
	recent int64
	since  time.Time
}

// account reads the view and the entry; it refuses what contradicts itself,
// what is disputed and what mixes currencies.
func (q Question) account() (*account, error) {
	if f := fault(q.View, len(q.Entry.GetIntents())); f != nil {
		return nil, Refuse(ReasonContradictory, "%s", f)
	}
	acc := &account{
		code: q.View.Order.GetTotal().GetCurrency(), captures: map[string]*amendsv1.Capture{}, charged: map[string]bool{},
		taken: map[string]int64{}, since: q.At.Add(-Slices),
	}
	for _, d := range q.View.Disputes {
		if d.GetStatus() == amendsv1.DisputeStatus_DISPUTE_STATUS_OPEN {
			return nil, Refuse(ReasonDisputed, "dispute %s is open", d.GetDisputeId())
		}
		if d.GetStatus() == amendsv1.DisputeStatus_DISPUTE_STATUS_LOST {
			acc.charged[d.GetPaymentId()] = true
		}
	}
	for _, c := range q.View.Captures {
		if c.GetAmount().GetCurrency() != acc.code {
			return nil, Refuse(ReasonCurrency, "payment %s is in %s, the order in %s", c.GetPaymentId(), c.GetAmount().GetCurrency(), acc.code)
		}
		acc.captures[c.GetPaymentId()] = c
		if c.GetSettled() && !acc.charged[c.GetPaymentId()] {
			acc.settled += c.GetAmount().GetMinor()
		}
	}
	matched, err := q.addRefunds(acc)
	if err != nil {
		return nil, err
	}
	asked := q.asked()
	for _, in := range q.Entry.GetIntents() {
		key := in.GetIdempotencyKey()
		if _, ok := asked[key]; ok || matched[key] || !live(in) {
			continue
		}
		if in.GetAmount().GetCurrency() != acc.code {
			return nil, Refuse(ReasonCurrency, "intent %s is in %s, the order in %s", key, in.GetAmount().GetCurrency(), acc.code)
		}
		acc.add(in.GetPaymentId(), in.GetAmount(), in.GetBegunAt())
	}
	return acc, nil
}

// addRefunds counts the provider's refunds and gives the keys of the intents
// they are the outcome of.
func (q Question) addRefunds(acc *account) (map[string]bool, error) {
	asked, matched := q.asked(), map[string]bool{}
	for _, r := range q.View.Refunds {
		key := r.GetReference()
		in := find(q.Entry, key)
		if in == nil { // made without our reference, and settled to be this one
			in = holder(q.Entry, r.GetRefundId())
		}
		if in != nil {
			key = in.GetIdempotencyKey()
		}
		p, ours := asked[key]
		switch {
		case ours && p.Standing != Doubtful:
			return nil, Undecidable(ReasonUnrecordedRefund, "refund %s carries key %s, which was not begun", r.GetRefundId(), key)
		case in != nil && (matched[key] || in.GetPaymentId() != r.GetPaymentId() || !money.Equal(in.GetAmount(), r.GetAmount())):
			return nil, Refuse(ReasonContradictory, "refund %s is not what key %s was begun for", r.GetRefundId(), key)
		}
		if in != nil {
			matched[key] = true
		}
		if !ours && !dead(r.GetStatus()) {
			acc.add(r.GetPaymentId(), r.GetAmount(), dated(r, in))
		}
	}
	return matched, nil
}

// dated gives when a refund counts from: what we began is not older than its
// beginning, whatever the provider's clock says.
func dated(r *amendsv1.Refund, in *amendsv1.EffectIntent) *timestamppb.Timestamp {
	at, begun := r.GetCreatedAt(), in.GetBegunAt()
	if at == nil || in == nil || !begun.AsTime().After(at.AsTime()) {
		return at
	}
	return begun
}

// asked gives the open refunds of the action by key.
func (q Question) asked() map[string]Position {
	out := make(map[string]Position, len(q.Positions))
	for _, p := range q.Positions {
		if p.Open() {
			out[p.Refund.GetIdempotencyKey()] = p
		}
	}
	return out
}

// add counts one refund. One without a date counts as recent.
func (acc *account) add(payment string, m *amendsv1.Money, at *timestamppb.Timestamp) {
	acc.taken[payment] += m.GetMinor()
	acc.refunded += m.GetMinor()
	if at == nil || !at.AsTime().Before(acc.since) {
		acc.recent += m.GetMinor()
	}
}
