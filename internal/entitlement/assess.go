package entitlement

import (
	"time"

	"github.com/amends-dev/amends/internal/approval"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// RuleSet names the version of these rules; it is pinned per case.
const RuleSet = "refund-rules/1"

// Kind is the direction of a finding.
type Kind int

// The findings.
const (
	// Refund: the refunds listed are due.
	Refund Kind = iota + 1
	// Hold: the evidence is incomplete or contradictory; look again later.
	Hold
	// NothingDue: complete evidence, and no refund follows from it.
	NothingDue
	// Person: the rules leave it to a person.
	Person
)

// Reason codes of a finding.
const (
	ReasonDuplicate       = "duplicate_settled_capture"
	ReasonNoDuplicate     = "no_duplicate_settled_capture"
	ReasonIncomplete      = "evidence_incomplete"
	ReasonContradiction   = "ledger_contradiction"
	ReasonPolicyMissing   = "policy_not_found"
	ReasonPolicyNoRule    = "policy_without_rule"
	ReasonPolicyStale     = "policy_superseded"
	ReasonPolicyConflict  = "policy_conflict"
	ReasonSinglePayment   = "single_payment"
	ReasonSplitTender     = "split_tender"
	ReasonNothingTaken    = "nothing_taken"
	ReasonAlreadyRefunded = "already_refunded"
	ReasonNoRefund        = "no_refund_on_record"
	ReasonOutsideWindow   = "outside_window"
	ReasonDispute         = "open_dispute"
	ReasonPartialRefund   = "partial_refund_exists"
	ReasonCurrency        = "currency_differs"
	ReasonPartialExcess   = "excess_not_whole_captures"
	ReasonWindowSplit     = "window_splits_duplicates"
	ReasonOrderMismatch   = "order_mismatch"
	ReasonTooMany         = "too_many_payments"
)

// Question is everything a decision reads.
type Question struct {
	OrderID string
	Payment *amendsv1.PaymentEvidence
	// Policy may be nil when StatusOnly.
	Policy *amendsv1.PolicyReading
	// PinnedCorpus is the corpus version the case was opened with.
	PinnedCorpus string
	ReceivedAt   time.Time
	// StatusOnly: the customer asks what happened; no action is planned.
	StatusOnly bool
	// ClaimsRefund: the customer says that a refund was made or promised.
	ClaimsRefund bool
}

// Finding is the answer, with the facts that may be told to the customer.
type Finding struct {
	Kind    Kind
	Reason  string
	Refunds []Due
	// Approvers is how many people must approve: 0, 1 or 2.
	Approvers int
	Facts     []*amendsv1.Claim
	Conflicts []*amendsv1.Conflict
	// CallIDs are the look-ups the finding rests on.
	CallIDs  []string
	Citation string
}

// Due is one refund that follows.
type Due struct {
	PaymentID string
	Amount    *amendsv1.Money
}

// KindDuplicate is the refund kind of a duplicate capture.
const KindDuplicate = approval.KindDuplicate

// What one action and one reply can hold; more is for people.
const (
	maxRefunds = 12
	maxFacts   = 24
)

// sliceWindow bounds the refunds that count towards the approval threshold.
const sliceWindow = 30 * 24 * time.Hour

// Assess answers a question. The same question always has the same answer.
func Assess(q Question) Finding {
	f := assess(q)
	if len(f.Refunds) > maxRefunds || len(f.Facts) > maxFacts {
		f = person(ReasonTooMany)
	}
	f.CallIDs = callIDs(q, f)
	f.Citation = q.Policy.GetPassage().GetCitation()
	if q.ClaimsRefund && q.Payment.GetComplete() && !hasLiveRefund(q.Payment) {
		f.Conflicts = append(f.Conflicts, &amendsv1.Conflict{
			Kind: "unsupported_customer_claim", OneSide: "customer: a refund was made or promised",
			OtherSide: "ledger: no refund on this order", ResolvedBy: "system_of_record",
		})
	}
	return f
}

func assess(q Question) Finding {
	p := q.Payment
	if !p.GetComplete() || p.GetOrder() == nil {
		return hold(ReasonIncomplete, claim(amendsv1.ClaimKind_CLAIM_KIND_EVIDENCE_PENDING))
	}
	if p.GetOrder().GetOrderId() != q.OrderID {
		return person(ReasonOrderMismatch)
	}
	if kind := contradiction(p); kind != "" {
		f := hold(ReasonContradiction, claim(amendsv1.ClaimKind_CLAIM_KIND_EVIDENCE_PENDING))
		f.Conflicts = []*amendsv1.Conflict{{Kind: ReasonContradiction, OneSide: kind}}
		return f
	}
	l, reason := newLedger(p)
	if reason != "" {
		return person(reason)
	}
	if l.disputed {
		return person(ReasonDispute)
	}
	if q.StatusOnly {
		return status(l)
	}
	if stop, ok := l.withoutExcess(); ok {
		return stop
	}
	return l.excessFinding(q)
}

func status(l *ledger) Finding {
	if len(l.refunds) > 0 {
		return Finding{Kind: NothingDue, Reason: ReasonAlreadyRefunded, Facts: l.refundFacts()}
	}
	return Finding{Kind: NothingDue, Reason: ReasonNoRefund, Facts: append(l.paymentFacts(), claim(amendsv1.ClaimKind_CLAIM_KIND_NO_REFUND_ON_RECORD))}
}

func hold(reason string, facts ...*amendsv1.Claim) Finding {
	return Finding{Kind: Hold, Reason: reason, Facts: facts}
}

func person(reason string, facts ...*amendsv1.Claim) Finding {
	return Finding{Kind: Person, Reason: reason, Facts: facts}
}

func claim(k amendsv1.ClaimKind) *amendsv1.Claim { return &amendsv1.Claim{Kind: k} }

func hasLiveRefund(p *amendsv1.PaymentEvidence) bool {
	for _, r := range p.GetRefunds() {
		if live(r) {
			return true
		}
	}
	return false
}

// callIDs names the look-ups behind a finding. A hold rests on the settlement
// look-up: it is the one whose answer is awaited.
func callIDs(q Question, f Finding) []string {
	var ids []string
	for _, c := range q.Payment.GetCalls() {
		if f.Reason == ReasonNoDuplicate && f.Kind == Hold && c.GetTool() != "payments.get_settlement" {
			continue
		}
		ids = append(ids, c.GetCallId())
	}
	if f.Kind == Hold && f.Reason == ReasonNoDuplicate {
		return ids
	}
	for _, c := range q.Policy.GetCalls() {
		ids = append(ids, c.GetCallId())
	}
	return ids
}
