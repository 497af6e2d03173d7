package casework

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/ident"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Codes of the findings between the effect ledger and the cases.
const (
	// CodeRefundWithoutCase: the ledger has a refund of a case that is not there.
	CodeRefundWithoutCase = "refund_without_case"
	// CodeCaseWithoutOutcome: the case is there and does not know of it.
	CodeCaseWithoutOutcome = "case_without_outcome"
	// CodeCaseLeftReconciling: its outcome is not known for too long.
	CodeCaseLeftReconciling = "case_left_reconciling"
	// CodeCaseWithoutRefund: the case says there is a refund, the ledger does not.
	CodeCaseWithoutRefund = "case_without_refund"
	// CodeCaseRefundDiffers: they name different refunds.
	CodeCaseRefundDiffers = "case_refund_differs"
	// CodeFailureUntold: the ledger knows that the refund failed, and the case
	// still says it was made.
	CodeFailureUntold = "failure_unknown_to_case"
)

// codeFailedLater is the ledger's code of a refund that failed after all.
const codeFailedLater = "refund_failed_later"

// Account is what a case says of money: where it is, and every refund it was
// ever told of, though a later effect may have taken its place in the record.
type Account struct {
	Tenant, CaseID, OrderID string
	Version                 uint64
	State                   amendsv1.CaseState
	// Since is when it came to its state; Next when it does something by
	// itself, zero when it does not.
	Since, Next, Updated time.Time
	Told                 map[string]Told
	// FailureTold: it went to people because a refund failed later, and the
	// customer was told that it did, or people have decided since.
	FailureTold bool
	// Asking: what became of its refunds is being read.
	Asking bool
}

// Told is one refund that a case was told of.
type Told struct {
	OrderID, PaymentID, RefundID string
	Amount                       *amendsv1.Money
	Status                       amendsv1.RefundStatus
	// At is when the case first said so.
	At time.Time
}

// Take brings an account up to a record of its case. An older record only adds
// what it was told of.
func (a *Account) Take(rec *amendsv1.CaseRecord) {
	if a.Told == nil {
		a.Told = map[string]Told{}
	}
	newer := rec.GetVersion() >= a.Version
	order := map[string]string{}
	for _, e := range Effects(rec) {
		for _, r := range e.GetEffect().GetRefunds() {
			order[r.GetIdempotencyKey()] = orDefault(e.GetAction().GetOrderId(), orderOf(rec))
		}
	}
	for _, r := range Made(rec) {
		o := r.GetOutcome()
		have, known := a.Told[r.GetIdempotencyKey()]
		if o.GetClass() != amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED || known && !newer {
			continue
		}
		at := rec.GetUpdatedAt().AsTime()
		if have.RefundID == o.GetRefundId() {
			at = have.At // what happens to the case later makes this no younger
		}
		a.Told[r.GetIdempotencyKey()] = Told{
			OrderID: order[r.GetIdempotencyKey()], PaymentID: r.GetPaymentId(), RefundID: o.GetRefundId(), Amount: r.GetAmount(), Status: readStatus(r), At: at,
		}
	}
	if !newer {
		return
	}
	a.OrderID = orderOf(rec)
	a.Tenant, a.CaseID, a.Version, a.State, a.Updated = rec.GetTenant(), rec.GetCaseId(), rec.GetVersion(), rec.GetState(), rec.GetUpdatedAt().AsTime()
	a.Since = a.Updated
	timeline := rec.GetTimeline()
	for i := len(timeline) - 1; i >= 0 && timeline[i].GetState() == a.State; i-- {
		a.Since = timeline[i].GetAt().AsTime()
	}
	a.Next, _ = Next(rec)
	a.FailureTold, a.Asking = failureTold(timeline), len(rec.GetUnconfirmed()) > 0
}

func failureTold(timeline []*amendsv1.TimelineEntry) bool {
	noted := false
	for _, e := range timeline {
		switch row := e.GetRow(); {
		case row == rowFailedLater, noted && decisionRow(row):
			return true
		case row == rowFailedNoted:
			noted = true
		}
	}
	return false
}

// orderOf gives the order whose money a case is about.
func orderOf(rec *amendsv1.CaseRecord) string {
	if id := rec.GetAction().GetOrderId(); id != "" {
		return id
	}
	return rec.GetTriage().GetOrderId()
}

// Refunds gives what the case was told of, by key.
func (a *Account) Refunds() map[string]Told {
	if a == nil {
		return nil
	}
	return a.Told
}

// Waits reports whether the case waits for an outcome.
func (a *Account) Waits() bool { return a.State == requested || a.State == reconciling }

// Entry is an order's ledger entry and when it was written.
type Entry struct {
	*amendsv1.EffectEntry
	At time.Time
}

// Tally compares the ledger with the cases.
type Tally struct {
	Tenant string
	At     time.Time
	// What is younger than Grace may be under way; after Left a case has been
	// in RECONCILING for too long.
	Grace, Left time.Duration
	// Case gives the account of a case, nil when there is none, and Ledger the
	// entry of an order, without one when there is none.
	Case   func(id string) *Account
	Ledger func(order string) Entry
}

// Entry compares an order's entry with the cases its refunds are of (MONEY-3).
func (t Tally) Entry(e Entry) []*amendsv1.EffectFinding {
	var out []*amendsv1.EffectFinding
	if t.At.Sub(e.At) < t.Grace {
		return nil
	}
	for _, in := range e.GetIntents() {
		o := in.GetOutcome()
		if o.GetClass() != amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED {
			continue
		}
		a := t.Case(in.GetCaseId())
		if a == nil {
			out = append(out, t.finding(CodeRefundWithoutCase, e.GetOrderId(), in, nil, in.GetCaseId()))
			continue
		}
		told, knows := a.Told[in.GetIdempotencyKey()]
		switch {
		case !knows && a.Waits() && a.Next.Add(t.Grace).After(t.At): // it asks again by itself
		case !knows && a.State == reconciling && t.left(a): // Account says so
		case !knows:
			out = append(out, t.finding(CodeCaseWithoutOutcome, e.GetOrderId(), in, a, a.CaseID))
		case told.RefundID != o.GetRefundId():
			out = append(out, t.finding(CodeCaseRefundDiffers, e.GetOrderId(), in, a, a.CaseID, told.RefundID))
		case failed(o.GetProviderStatus()) && !failed(told.Status) && !a.FailureTold && !a.Asking && (a.State == refunded || a.State == closed):
			out = append(out, t.finding(CodeFailureUntold, e.GetOrderId(), in, a, a.CaseID))
		}
	}
	return out
}

// Account compares a case with the entries of the orders it says it refunded.
func (t Tally) Account(a *Account) []*amendsv1.EffectFinding {
	var out []*amendsv1.EffectFinding
	if t.left(a) {
		out = append(out, &amendsv1.EffectFinding{
			FindingId: ident.Finding(t.Tenant, CodeCaseLeftReconciling, "", a.CaseID, strconv.FormatInt(a.Since.UnixMilli(), 10)), Code: CodeCaseLeftReconciling,
			OrderId: a.OrderID, AboutCaseId: a.CaseID, Records: []*amendsv1.FindingRecord{t.stateOf(a, a.CaseID)},
		})
	}
	for key, told := range a.Told {
		e := t.Ledger(told.OrderID)
		in := intentOf(e.EffectEntry, key)
		id := in.GetOutcome().GetRefundId()
		if id == told.RefundID || t.At.Sub(told.At) < t.Grace || e.EffectEntry != nil && t.At.Sub(e.At) < t.Grace {
			continue
		}
		if id != "" {
			out = append(out, t.finding(CodeCaseRefundDiffers, told.OrderID, in, a, a.CaseID, told.RefundID))
			continue
		}
		f := &amendsv1.EffectFinding{
			FindingId: ident.Finding(t.Tenant, CodeCaseWithoutRefund, told.OrderID, a.CaseID, key, told.RefundID), Code: CodeCaseWithoutRefund, OrderId: told.OrderID,
			PaymentId: told.PaymentID, RefundId: told.RefundID, IdempotencyKey: key, AboutCaseId: a.CaseID,
			Records: []*amendsv1.FindingRecord{
				{Source: "case", Kind: "outcome", Id: told.RefundID, Amount: told.Amount, Status: statusWord(told.Status)},
				t.stateOf(a, a.CaseID), intentRecord(in, key),
			},
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y *amendsv1.EffectFinding) int { return strings.Compare(x.GetFindingId(), y.GetFindingId()) })
	return t.dated(out)
}

// left reports whether a case has waited for its outcome for too long.
func (t Tally) left(a *Account) bool { return a.State == reconciling && t.At.Sub(a.Since) >= t.Left }

// finding is one about an intent and what its case says; apart are further
// names of what disagrees.
func (t Tally) finding(code, order string, in *amendsv1.EffectIntent, a *Account, caseID string, apart ...string) *amendsv1.EffectFinding {
	names := append([]string{caseID, in.GetIdempotencyKey(), in.GetOutcome().GetRefundId()}, apart...)
	f := &amendsv1.EffectFinding{
		FindingId: ident.Finding(t.Tenant, code, order, names...), Code: code, OrderId: order, PaymentId: in.GetPaymentId(),
		RefundId: in.GetOutcome().GetRefundId(), IdempotencyKey: in.GetIdempotencyKey(),
		Records: []*amendsv1.FindingRecord{intentRecord(in, in.GetIdempotencyKey()), t.stateOf(a, caseID)},
	}
	if a != nil {
		f.AboutCaseId = a.CaseID
		if told, ok := a.Told[in.GetIdempotencyKey()]; ok {
			f.Records = append(f.Records, &amendsv1.FindingRecord{Source: "case", Kind: "outcome", Id: told.RefundID, Amount: told.Amount, Status: statusWord(told.Status)})
		}
	}
	return t.dated([]*amendsv1.EffectFinding{f})[0]
}

func (t Tally) dated(findings []*amendsv1.EffectFinding) []*amendsv1.EffectFinding {
	for _, f := range findings {
		f.Tenant, f.SeenAt = t.Tenant, timestamppb.New(t.At)
	}
	return findings
}

func (t Tally) stateOf(a *Account, caseID string) *amendsv1.FindingRecord {
	status := "absent"
	if a != nil {
		status = StateName(a.State)
	}
	return &amendsv1.FindingRecord{Source: "case", Kind: "state", Id: caseID, Status: status}
}

func intentOf(e *amendsv1.EffectEntry, key string) *amendsv1.EffectIntent {
	for _, in := range e.GetIntents() {
		if in.GetIdempotencyKey() == key {
			return in
		}
	}
	return nil
}

// intentRecord shows what the ledger has of a key.
func intentRecord(in *amendsv1.EffectIntent, key string) *amendsv1.FindingRecord {
	rec := &amendsv1.FindingRecord{Source: "ledger", Kind: "intent", Id: key, Amount: in.GetAmount(), Status: "absent"}
	if o := in.GetOutcome(); o != nil {
		rec.Status = strings.ToLower(effectWord(o.GetClass()))
		if o.GetRefundId() != "" {
			rec.Status += " " + statusWord(o.GetProviderStatus())
		}
	} else if in != nil {
		rec.Status = "outcome_open"
	}
	return rec
}
