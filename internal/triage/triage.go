package triage

import (
	"slices"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Engine names these rules and their version in the record.
const Engine = "deterministic/2"

// What a customer can want.
const (
	DuplicateCharge    = "duplicate_charge_refund"
	RefundStatus       = "refund_status"
	CancelRequest      = "cancel_request"
	RefundOther        = "refund_request_other"
	UnrecognisedCharge = "unrecognised_charge"
	Other              = "other"
)

// Reason codes of a triage that ends with a question or with a person.
const (
	ReasonNoOrder       = "no_order"
	ReasonOrderNotFound = "order_not_found"
	ReasonAmbiguousText = "ambiguous_text"
	ReasonSeveralOrders = "several_orders"
	ReasonLowConfidence = "low_confidence"
	ReasonNotUnderstood = "not_understood"
	ReasonContradictory = "contradictory_text"
	ReasonPossibleFraud = "possible_fraud"
	ReasonRefundOther   = "refund_request_other"
	ReasonCancelOther   = "cancel_of_something_else"
)

// MaxRefs is how many order references a reading holds at most.
const MaxRefs = 3

// enough is the confidence below which the customer is asked; unsure is that of
// a text that says so and does not.
const enough, unsure = 50, 40

// Reading is what a text says, before anybody looked anything up.
type Reading struct {
	// Intents are ordered; the first is the main one. Never empty.
	Intents []string
	// Refs are the orders the text names, at most MaxRefs, each a valid
	// subject token.
	Refs []string
	// Explicit says that the refs were called orders; else they are numbers
	// that may be one.
	Explicit bool
	// MoreRefs says that the text names more than Refs holds.
	MoreRefs bool
	// Ambiguous says that a number in the text may read differently to
	// a person; Refs is empty then.
	Ambiguous bool
	// Withdraws says that the text takes back what was asked of the desk.
	Withdraws bool
	// Declines says that the text wants no refund, be it for now.
	Declines bool
	// Retracts says that by the text nothing was paid twice, or is to be paid
	// back, whatever else it says: nothing is refunded on it without a person.
	Retracts bool
	// Fraud says that the text speaks of somebody else using the account.
	Fraud bool
	// ClaimsRefund says that by the text a refund was made or promised.
	ClaimsRefund bool
	Amounts      []*amendsv1.Money
	Flags        []amendsv1.TextFlag
	// Confidence is from 0 to 100.
	Confidence uint32
}

// Continue reads a later message in the light of the triage before it. What it
// does not say anew stands: the order that was confirmed, and what was wanted.
// An order that was not confirmed has to be named again.
func (r Reading) Continue(earlier *amendsv1.Triage) Reading {
	if earlier.GetOrderId() != "" && len(r.Refs) == 0 && !r.Ambiguous {
		r.Refs, r.Explicit = []string{earlier.GetOrderId()}, true
	}
	if len(r.Amounts) == 0 {
		r.Amounts = earlier.GetStatedAmounts()
	}
	r.ClaimsRefund = r.ClaimsRefund || earlier.GetClaimsRefund()
	// A refund that is under way is stopped by whoever wants none, or says that
	// nothing was paid twice.
	if earlier.GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED && !r.Withdraws &&
		(r.Declines || r.Retracts && !slices.Contains(r.Intents, DuplicateCharge)) {
		r.Withdraws = true
		r.Intents = slices.DeleteFunc(append([]string{CancelRequest}, r.Intents...), func(in string) bool { return in == Other })
	}
	if in := earlier.GetIntents(); r.Intents[0] == Other && !r.Retracts && len(in) > 0 && in[0] != Other {
		r.Intents, r.Confidence = slices.Clone(in), max(r.Confidence, earlier.GetConfidence())
	}
	return r
}

// Conclude says what the desk does about a reading. owned are those of its
// references that the payments side confirmed as the caller's own.
func Conclude(r Reading, owned []string) *amendsv1.Triage {
	t := &amendsv1.Triage{
		Intents: r.Intents, OrderRefs: r.Refs, StatedAmounts: r.Amounts, Confidence: r.Confidence,
		Engine: Engine, ClaimsRefund: r.ClaimsRefund, Flags: r.Flags,
	}
	order, question := r.order(owned)
	t.OrderId = order
	t.Outcome, t.Reason = r.outcome(question)
	return t
}

func (r Reading) outcome(question string) (amendsv1.TriageOutcome, string) {
	main := r.Intents[0]
	switch {
	case r.Withdraws:
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_CANCEL, ""
	case r.Fraud || main == UnrecognisedCharge:
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, ReasonPossibleFraud
	case r.Ambiguous:
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY, ReasonAmbiguousText
	case main == RefundOther:
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, ReasonRefundOther
	case main == CancelRequest:
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, ReasonCancelOther
	case r.Confidence < enough && main != RefundStatus && question == "": // a question for the order would be the wrong one
		if r.Retracts {
			return amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, ReasonContradictory
		}
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_NEEDS_PERSON, ReasonNotUnderstood
	case r.Confidence < enough && main != RefundStatus:
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY, ReasonLowConfidence
	case question != "":
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_CLARIFY, question
	case main == RefundStatus: // reads only
		return amendsv1.TriageOutcome_TRIAGE_OUTCOME_STATUS_ONLY, ""
	}
	return amendsv1.TriageOutcome_TRIAGE_OUTCOME_SUPPORTED, ""
}

// order gives the one order the reading is about, or the reason to ask.
func (r Reading) order(owned []string) (string, string) {
	if r.Ambiguous {
		return "", ReasonAmbiguousText
	}
	if len(r.Refs) == 0 {
		return "", ReasonNoOrder
	}
	var mine []string
	for _, ref := range r.Refs {
		if slices.Contains(owned, ref) {
			mine = append(mine, ref)
		}
	}
	switch {
	case len(mine) == 0, r.Explicit && len(mine) < len(r.Refs):
		return "", ReasonOrderNotFound
	case len(mine) > 1 || r.MoreRefs:
		return "", ReasonSeveralOrders
	}
	return mine[0], ""
}
