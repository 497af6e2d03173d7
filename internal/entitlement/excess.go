package entitlement

import (
	"time"

	"github.com/amends-dev/amends/internal/money"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// withoutExcess answers the orders on which nothing more was settled than is
// owed.
func (l *ledger) withoutExcess() (Finding, bool) {
	if l.excess > 0 {
		return Finding{}, false
	}
	var held int64
	for _, c := range l.waiting {
		held += c.GetAmount().GetMinor()
	}
	taken := int64(0)
	for _, c := range l.settled {
		taken += c.GetAmount().GetMinor()
	}
	switch {
	case held > 0 && l.excess+held > 0:
		return hold(ReasonNoDuplicate, l.holdFacts()...), true
	case len(l.refunds) > 0 && taken > l.total.GetMinor():
		return Finding{Kind: NothingDue, Reason: ReasonAlreadyRefunded, Facts: l.refundFacts()}, true
	case taken == 0 && held == 0:
		return Finding{Kind: NothingDue, Reason: ReasonNothingTaken, Facts: []*amendsv1.Claim{claim(amendsv1.ClaimKind_CLAIM_KIND_NOTHING_TAKEN)}}, true
	case len(l.settled) > 1:
		return Finding{Kind: NothingDue, Reason: ReasonSplitTender, Facts: l.splitFacts()}, true
	case len(l.refunds) > 0:
		return Finding{Kind: NothingDue, Reason: ReasonAlreadyRefunded, Facts: l.refundFacts()}, true
	default:
		return Finding{Kind: NothingDue, Reason: ReasonSinglePayment, Facts: append(l.paymentFacts(), l.holdFacts()...)}, true
	}
}

// excessFinding answers the orders on which more was settled than is owed.
func (l *ledger) excessFinding(q Question) Finding {
	for _, c := range l.settled {
		if r := l.refunded[c.GetPaymentId()]; r > 0 && r < c.GetAmount().GetMinor() {
			return person(ReasonPartialRefund, l.refundFacts()...)
		}
	}
	dup := l.duplicates()
	if dup == nil {
		return person(ReasonPartialExcess)
	}
	if f, ok := l.policyStop(q); ok {
		return f
	}
	window := time.Duration(q.Policy.GetRule().GetWindowHours()) * time.Hour
	late := 0
	for _, c := range dup {
		if q.ReceivedAt.Sub(c.GetSettledAt().AsTime()) > window {
			late++
		}
	}
	switch {
	case late == len(dup):
		days := uint32(window / (24 * time.Hour)) //nolint:gosec // the contract bounds the window to three years
		return Finding{Kind: NothingDue, Reason: ReasonOutsideWindow, Facts: []*amendsv1.Claim{
			{Kind: amendsv1.ClaimKind_CLAIM_KIND_OUTSIDE_WINDOW, Days: days}, claim(amendsv1.ClaimKind_CLAIM_KIND_PERSON_CAN_REVIEW),
		}}
	case late > 0:
		return person(ReasonWindowSplit)
	}
	f := Finding{Kind: Refund, Reason: ReasonDuplicate}
	var sum int64
	for _, c := range dup {
		f.Refunds = append(f.Refunds, Due{PaymentID: c.GetPaymentId(), Amount: c.GetAmount()})
		f.Facts = append(f.Facts, &amendsv1.Claim{Kind: amendsv1.ClaimKind_CLAIM_KIND_DUPLICATE_FOUND, Amount: c.GetAmount(), Count: 1})
		sum += c.GetAmount().GetMinor()
	}
	f.Approvers = approvers(q, l, sum)
	return f
}

// duplicates gives the later captures that make up the excess, whole, or nil
// when none do. It takes the latest first, so that the earliest stays.
func (l *ledger) duplicates() []*amendsv1.Capture {
	left := l.excess
	var out []*amendsv1.Capture
	for i := len(l.settled) - 1; i > 0 && left > 0; i-- {
		c := l.settled[i]
		if l.refunded[c.GetPaymentId()] > 0 || c.GetAmount().GetMinor() == 0 || c.GetAmount().GetMinor() > left {
			continue
		}
		left -= c.GetAmount().GetMinor()
		out = append([]*amendsv1.Capture{c}, out...)
	}
	if left != 0 {
		return nil
	}
	return out
}

// policyStop answers when the policy does not carry a refund.
func (l *ledger) policyStop(q Question) (Finding, bool) {
	p := q.Policy
	switch {
	case p.GetOutcome() != amendsv1.LookupOutcome_LOOKUP_OUTCOME_SUPPORTED || p.GetPassage() == nil:
		return hold(ReasonPolicyMissing, l.paymentFacts()...), true
	case p.GetRule() == nil:
		return person(ReasonPolicyNoRule), true // found, and it leaves the matter to people
	case len(p.GetConflicts()) > 0:
		f := person(ReasonPolicyConflict)
		for _, c := range p.GetConflicts() {
			f.Conflicts = append(f.Conflicts, &amendsv1.Conflict{Kind: ReasonPolicyConflict, OneSide: p.GetPassage().GetCitation(), OtherSide: c.GetCitation()})
		}
		return f, true
	case p.GetPassage().GetSuperseded() || p.GetCorpusVersion() != q.PinnedCorpus || p.GetRule().GetName() != KindDuplicate:
		return hold(ReasonPolicyStale, l.paymentFacts()...), true
	}
	return Finding{}, false
}

// approvers gives how many people the rule wants for a sum, counting the
// order's refunds of the last 30 days so that slices do not slip under it.
func approvers(q Question, l *ledger, sum int64) int {
	for _, r := range l.refunds {
		if r.GetCreatedAt() == nil || q.ReceivedAt.Sub(r.GetCreatedAt().AsTime()) <= sliceWindow {
			sum += r.GetAmount().GetMinor()
		}
	}
	return ApproversFor(q.Policy.GetRule(), money.New(sum, l.total.GetCurrency()))
}

// ApproversFor gives how many people a rule wants for a total: one where it
// names no threshold in that currency.
func ApproversFor(rule *amendsv1.RefundRule, total *amendsv1.Money) int {
	first, known := reaches(total, rule.GetApprovalThresholds())
	switch second, _ := reaches(total, rule.GetSecondThresholds()); {
	case second:
		return 2
	case first || !known:
		return 1
	}
	return 0
}

// reaches reports whether an amount is at or above its currency's threshold,
// and whether there is one.
func reaches(m *amendsv1.Money, thresholds []*amendsv1.Money) (at, known bool) {
	for _, t := range thresholds {
		if t.GetCurrency() == m.GetCurrency() {
			return m.GetMinor() >= t.GetMinor(), true
		}
	}
	return false, false
}
