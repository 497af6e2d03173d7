package ledger

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Codes of the findings of Balance; docs/reconciliation.md says what a person
// does with each.
const (
	// At the provider, and not in the ledger.
	CodeWithoutIntent    = "refund_without_intent"
	CodeUnknownReference = "refund_unknown_reference"
	CodeAfterWithdrawal  = "refund_after_withdrawal"
	CodeTwoForOneIntent  = "two_refunds_one_intent"
	// In the ledger, and not at the provider.
	CodeRefundMissing = "refund_missing"
	CodeOrderMissing  = "order_missing"
	CodeInDoubt       = "in_doubt_too_long"
	// In both, and not alike.
	CodePaymentDiffers   = "payment_differs"
	CodeAmountDiffers    = "amount_differs"
	CodeReferenceDiffers = "reference_differs"
	CodeRefundIDDiffers  = "refund_id_differs"
	CodeStatusDiffers    = "status_differs"
	CodeOutcomeContra    = "outcome_contradicted"
	CodeFailedLater      = "refund_failed_later"
	// What a webhook said.
	CodeEventAlone  = "event_without_refund"
	CodeEventContra = "event_contradicted"
	// Sums.
	CodeCaptureOver = "capture_over_refunded"
	CodeOrderOver   = "order_over_refunded"
	// One side in itself.
	CodeOrderContra  = "order_contradictory"
	CodeLedgerContra = "ledger_contradictory"
)

// EventFailed is the kind of a webhook that says a refund moved no money.
const EventFailed = "refund.failed"

// maxRecords is how many records a finding holds.
const maxRecords = 16

// Books are all records of the money of one order, which must agree: captures
// and refunds as the provider shows them, intents and outcomes of the ledger,
// and what webhooks said.
type Books struct {
	Tenant, OrderID string
	// Entry is nil when nothing was ever begun.
	Entry *amendsv1.EffectEntry
	View  View
	// Listed are the order's refunds in the provider's list of the tenant's.
	Listed []*amendsv1.Refund
	At     time.Time
	// What is younger than Grace may be under way. After InDoubt an intent whose
	// outcome is not known is for people.
	Grace, InDoubt time.Duration
}

// Balance is what the books of an order come to.
type Balance struct {
	Findings []*amendsv1.EffectFinding
	// Moved are refunds whose status at the provider is not the ledger's any
	// more. One that failed later, or came back, is both moved and a
	// finding.
	Moved []Moved
}

// Moved is a refund with the status the provider shows now.
type Moved struct {
	Key, RefundID string
	Status        amendsv1.RefundStatus
}

// Balance compares the books. The same books give the same findings, and the
// same disagreement has the same id in later books, also when time passed or
// a status moved on meanwhile.
func (b Books) Balance() Balance {
	c := begun(b)
	c.ledgerItself()
	if b.View.Order == nil {
		c.orderMissing()
		return c.out
	}
	flawed := c.contradictions()
	c.match()
	for _, in := range b.Entry.GetIntents() {
		switch found := c.matched[in.GetIdempotencyKey()]; len(found) {
		case 0:
			c.unmatched(in)
		default:
			c.matches(in, found)
		}
	}
	c.events()
	if !flawed {
		c.sums()
	}
	return c.out
}

// Unusable gives the findings of an order that has no place in the ledger,
// because its id is no token: each of its refunds is nobody's.
func (b Books) Unusable() []*amendsv1.EffectFinding {
	c := begun(b)
	for _, r := range b.Listed {
		c.stranger(r)
	}
	return c.out.Findings
}

func begun(b Books) *balancing {
	return &balancing{Books: b, acknowledged: map[string]*amendsv1.EffectIntent{}, refunds: map[string]*amendsv1.Refund{}, matched: map[string][]*amendsv1.Refund{}}
}

// balancing is one comparison under way.
type balancing struct {
	Books
	out Balance
	// acknowledged are the intents by the refund they were acknowledged with.
	acknowledged map[string]*amendsv1.EffectIntent
	// refunds are the provider's by id, matched by the key of their intent.
	refunds map[string]*amendsv1.Refund
	matched map[string][]*amendsv1.Refund
	// strangers is the sum of the refunds that are nobody's.
	strangers int64
}

// disagreement is what a finding is made of.
type disagreement struct {
	code            string
	payment, refund string
	intent          *amendsv1.EffectIntent
	about           string
	records         []*amendsv1.FindingRecord
	// apart tells two findings of one code about the same records apart.
	apart string
	// named are the records that make its id; all of them by default.
	named []*amendsv1.FindingRecord
}

// add makes a finding. Its id follows from the records' names and amounts, not
// from their statuses, which move on by themselves.
func (c *balancing) add(d disagreement) {
	if d.named == nil {
		d.named = d.records
	}
	names := []string{d.apart}
	for _, r := range d.named {
		names = append(names, r.GetSource(), r.GetKind(), r.GetId(), strconv.FormatInt(r.GetAmount().GetMinor(), 10), r.GetAmount().GetCurrency())
	}
	if d.intent != nil && d.about == "" {
		d.about = d.intent.GetCaseId()
	}
	c.out.Findings = append(c.out.Findings, &amendsv1.EffectFinding{
		FindingId: ident.Finding(c.Tenant, d.code, c.OrderID, names...), Code: d.code, Tenant: c.Tenant, OrderId: orderText(c.OrderID),
		PaymentId: clip(d.payment, 64), RefundId: clip(d.refund, 64), IdempotencyKey: d.intent.GetIdempotencyKey(), AboutCaseId: d.about,
		Records: d.records[:min(len(d.records), maxRecords)], SeenAt: timestamppb.New(c.At),
	})
}

// young reports whether something may still be under way.
func (c *balancing) young(at *timestamppb.Timestamp, grace time.Duration) bool {
	return c.At.Sub(at.AsTime()) < grace
}

// match says whose each refund of the provider is: that of the intent that was
// acknowledged with it, else of the one whose key it bears.
func (c *balancing) match() {
	for _, r := range c.View.Refunds {
		if c.refunds[r.GetRefundId()] != nil {
			continue // listed twice: a contradiction of its own
		}
		c.refunds[r.GetRefundId()] = r
		in := c.acknowledged[r.GetRefundId()]
		if in == nil {
			in = find(c.Entry, r.GetReference())
		}
		if in == nil {
			c.stranger(r)
			continue
		}
		c.matched[in.GetIdempotencyKey()] = append(c.matched[in.GetIdempotencyKey()], r)
	}
}

// stranger is a refund that no intent stands for. One without our reference
// that failed moved no money and is no matter of the desk.
func (c *balancing) stranger(r *amendsv1.Refund) {
	d := disagreement{code: CodeWithoutIntent, payment: r.GetPaymentId(), refund: r.GetRefundId()}
	t := tombstone(c.Entry, r.GetReference())
	switch {
	case t != nil:
		d.code, d.about = CodeAfterWithdrawal, t.GetCaseId()
		d.records = []*amendsv1.FindingRecord{refundRecord(r), {Source: sourceLedger, Kind: kindIntent, Id: t.GetIdempotencyKey(), Status: "withdrawn"}}
	case ours(r.GetReference()):
		d.code = CodeUnknownReference
		d.records = []*amendsv1.FindingRecord{refundRecord(r), {Source: sourceLedger, Kind: kindIntent, Id: clip(r.GetReference(), 160), Status: statusAbsent}}
	case dead(r.GetStatus()):
		return
	default:
		d.records = []*amendsv1.FindingRecord{refundRecord(r), {Source: sourceLedger, Kind: kindIntent, Status: statusAbsent}}
	}
	if !dead(r.GetStatus()) {
		c.strangers += r.GetAmount().GetMinor()
	}
	c.add(d)
}

// unmatched is an intent without a refund at the provider.
func (c *balancing) unmatched(in *amendsv1.EffectIntent) {
	o := in.GetOutcome()
	d := disagreement{payment: in.GetPaymentId(), refund: o.GetRefundId(), intent: in}
	switch {
	case standing(in) == Doubtful && !c.young(in.GetBegunAt(), c.InDoubt):
		c.inDoubt(in, &amendsv1.FindingRecord{Source: sourceProvider, Kind: kindRefund, Status: statusAbsent})
	case o.GetClass() == amendsv1.EffectClass_EFFECT_CLASS_ACKNOWLEDGED && !c.young(o.GetAt(), c.Grace):
		d.code = CodeRefundMissing
		d.records = []*amendsv1.FindingRecord{intentRecord(in), {Source: sourceProvider, Kind: kindRefund, Id: o.GetRefundId(), Status: statusAbsent}}
		c.add(d)
	}
}

func (c *balancing) inDoubt(in *amendsv1.EffectIntent, other *amendsv1.FindingRecord) {
	mine := intentRecord(in)
	c.add(disagreement{
		code: CodeInDoubt, payment: in.GetPaymentId(), refund: other.GetId(), intent: in,
		records: []*amendsv1.FindingRecord{mine, other}, named: []*amendsv1.FindingRecord{mine},
	})
}

// matches compares an intent with the refunds that are its own.
func (c *balancing) matches(in *amendsv1.EffectIntent, found []*amendsv1.Refund) {
	r := found[0]
	if i := slices.IndexFunc(found, func(r *amendsv1.Refund) bool { return r.GetRefundId() == in.GetOutcome().GetRefundId() }); i >= 0 {
		r = found[i]
	}
	differ := func(code string) {
		c.add(disagreement{code: code, payment: in.GetPaymentId(), refund: r.GetRefundId(), intent: in, records: []*amendsv1.FindingRecord{intentRecord(in), refundRecord(r)}})
	}
	if len(found) > 1 {
		d := disagreement{code: CodeTwoForOneIntent, payment: in.GetPaymentId(), refund: r.GetRefundId(), intent: in, records: []*amendsv1.FindingRecord{intentRecord(in)}}
		for _, r := range found {
			d.records = append(d.records, refundRecord(r))
		}
		c.add(d)
	}
	if in.GetPaymentId() != r.GetPaymentId() {
		differ(CodePaymentDiffers)
	}
	if !money.Equal(in.GetAmount(), r.GetAmount()) {
		differ(CodeAmountDiffers)
	}
	if r.GetReference() != in.GetIdempotencyKey() {
		differ(CodeReferenceDiffers)
	}
	had := in.GetOutcome().GetRefundId()
	switch st := standing(in); {
	case st == Doubtful && !c.young(in.GetBegunAt(), c.InDoubt):
		c.inDoubt(in, refundRecord(r))
	case st == Doubtful:
	case had == "" && !dead(r.GetStatus()): // the ledger says that nothing was done
		differ(CodeOutcomeContra)
	case had == "":
	case had != r.GetRefundId():
		differ(CodeRefundIDDiffers)
	default:
		c.status(in, r, differ)
	}
}

// status compares what the ledger and the provider say became of a refund.
func (c *balancing) status(in *amendsv1.EffectIntent, r *amendsv1.Refund, differ func(code string)) {
	had, now := in.GetOutcome().GetProviderStatus(), r.GetStatus()
	moved := func() {
		if in.GetPaymentId() != r.GetPaymentId() || !money.Equal(in.GetAmount(), r.GetAmount()) {
			return // another refund than was asked for
		}
		c.out.Moved = append(c.out.Moved, Moved{Key: in.GetIdempotencyKey(), RefundID: r.GetRefundId(), Status: now})
	}
	switch {
	case had == now, !dead(now) && !standsFor(now): // an unknown one is a contradiction of the order
	case dead(had) && dead(now):
		moved()
	case dead(now):
		differ(CodeFailedLater)
		moved()
	case dead(had): // it came back to life
		differ(CodeStatusDiffers)
		moved()
	case had == amendsv1.RefundStatus_REFUND_STATUS_SUCCEEDED: // that does not go back
		differ(CodeStatusDiffers)
	default:
		moved()
	}
}
