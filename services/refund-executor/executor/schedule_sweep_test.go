package executor

import (
	"time"

	"github.com/amends-dev/amends/internal/casework"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/refund-executor/ledger"
)

// young is what the sweep leaves alone.
const young = 10 * time.Minute

// sweep compares provider, ledger and cases, as the executor's and the
// orchestrator's schedules do, some time after everything came to rest.
func (w *world) sweep() []*amendsv1.EffectFinding {
	at := w.clock.Add(time.Hour)
	var e *amendsv1.EffectEntry
	if len(w.history) > 0 {
		e = w.history[len(w.history)-1]
	}
	o := w.read()
	found := ledger.Books{
		Tenant: theTenant, OrderID: theOrder, Entry: e, Listed: o.Refunds, At: at, Grace: young, InDoubt: young,
		View: ledger.View{Tenant: theTenant, Order: o.Order, Captures: o.Captures, Refunds: o.Refunds, Disputes: o.Disputes},
	}.Balance().Findings
	entry := casework.Entry{EffectEntry: e, At: w.clock}
	t := casework.Tally{
		Tenant: theTenant, At: at, Grace: young, Left: 24 * time.Hour, Ledger: func(string) casework.Entry { return entry },
		Case: func(id string) *casework.Account {
			if m := w.matter(id); m != nil {
				return &m.account
			}
			return nil
		},
	}
	found = append(found, t.Entry(entry)...)
	for _, m := range w.matters {
		found = append(found, t.Account(&m.account)...)
	}
	return found
}

// swept reports whether the sweep brings a refund to people.
func (w *world) swept(k made) bool {
	for _, f := range w.sweep() {
		if f.GetRefundId() == k.GetRefundId() || f.GetIdempotencyKey() == k.GetReference() {
			w.saw[sawLeftToSweep] = true
			return true
		}
	}
	return false
}

// mustBalance: where nothing was done by hand, nothing failed and no case came
// to people, the sweep has nothing to say.
func (j *judge) mustBalance() {
	if len(j.hands) > 0 || len(j.failed) > 0 {
		return
	}
	for _, m := range j.w.matters {
		if m.rec.GetOutcomeUnknown() || !m.people.IsZero() {
			return
		}
	}
	j.w.saw[sawBalance] = true
	for _, f := range j.w.sweep() {
		j.w.breaks("BALANCE", "%s of %s %s, without a reason", f.GetCode(), f.GetRefundId(), f.GetIdempotencyKey())
	}
}
