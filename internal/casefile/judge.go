package casefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/amends-dev/amends/internal/money"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// The outcomes of a case.
const (
	RefundAuto          = "REFUND_AUTO"
	RefundAfterApproval = "REFUND_AFTER_APPROVAL"
	NoRefundExplain     = "NO_REFUND_EXPLAIN"
	StatusOnly          = "STATUS_ONLY"
	Clarify             = "CLARIFY"
	RejectAtGateway     = "REJECT_AT_GATEWAY"
)

// Difference is one thing that is not as expected.
type Difference struct {
	What     string `json:"what"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
	// Why says more, e.g. which word of a fact no reply holds.
	Why string `json:"why,omitempty"`
}

// Judgement is what a case's evidence comes to.
type Judgement struct {
	Differences []Difference `json:"differences"`
	// NotJudged are expectations and forbidden events nobody can look for.
	NotJudged []string `json:"not_judged"`
	// Notes are differences that do not fail a case.
	Notes []string `json:"notes"`

	Outcome    string   `json:"outcome"`
	FinalState string   `json:"final_state"`
	Orders     []string `json:"orders_in_scope"`
	Intents    []string `json:"intents"`
	Refunds    []string `json:"refunds"`
}

// NoJudgement is that of a case that could not be played.
func NoJudgement() Judgement {
	return Judgement{Differences: []Difference{}, NotJudged: []string{}, Notes: []string{}, Orders: []string{}, Intents: []string{}, Refunds: []string{}}
}

// Passed reports that everything that could be judged is as expected.
func (j Judgement) Passed() bool { return len(j.Differences) == 0 }

func (j *Judgement) differ(what, expected, actual, why string) {
	j.Differences = append(j.Differences, Difference{what, expected, actual, why})
}

// Judge compares what came of a case with what it expects.
func Judge(c *Case, e Evidence) Judgement {
	j := Judgement{
		Outcome: outcome(e), FinalState: finalState(e), Orders: append([]string{}, e.scope()...), Intents: append([]string{}, e.intents()...),
		NotJudged: []string{}, Notes: append([]string{}, c.Notes...), Differences: []Difference{}, Refunds: []string{},
	}
	want := c.Expected
	if as := e.expected(want); len(as.Tracks) < len(e.Tracks) {
		j.Notes = append(j.Notes, fmt.Sprintf("the request goes on in linked cases: %s, %s; what is expected is what the first message came to", j.Outcome, j.FinalState))
		j.Outcome, j.FinalState = outcome(as), finalState(as)
	}
	if want.Outcome != "" && !sameOutcome(want.Outcome, j.Outcome) {
		j.differ("outcome", want.Outcome, j.Outcome, why(e))
	}
	if want.FinalState != "" && want.FinalState != j.FinalState {
		j.differ("final state", want.FinalState, j.FinalState, "")
	}
	j.judgeRefunds(want, e)
	// A message that was refused at the door was not read.
	if e.Refused == nil {
		j.judgeScope(want)
	}
	j.judgeReplies(c, e)
	j.judgeForbidden(c, e)
	for _, name := range want.unknownMembers {
		j.NotJudged = append(j.NotJudged, "expected."+name)
	}
	for _, t := range e.Tracks {
		if t.State != "" && t.State != stateName(t.record()) {
			j.differ("customer's view of "+t.CaseID, stateName(t.record()), t.State, "the view is not the record's")
		}
	}
	return j
}

// expected gives the evidence an expectation is about: all of it, or, when that
// is not what is expected, without the cases in which a matter went on after
// its end. A case file may speak of either.
func (e Evidence) expected(want Expected) Evidence {
	first := e
	first.Tracks = slices.DeleteFunc(slices.Clone(e.Tracks), func(t Track) bool { return t.record().GetContinuesCaseId() != "" })
	fits := func(e Evidence) bool {
		return (want.Outcome == "" || sameOutcome(want.Outcome, outcome(e))) && (want.FinalState == "" || want.FinalState == finalState(e))
	}
	if !fits(e) && fits(first) {
		return first
	}
	return e
}

// outcome names what the request came to; two cases that ended differently
// have two.
func outcome(e Evidence) string {
	if e.Refused != nil {
		return RejectAtGateway
	}
	var out []string
	for _, t := range e.Tracks {
		if o := trackOutcome(t, e); !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	if len(out) == 0 {
		return "no case"
	}
	return strings.Join(out, " + ")
}

// ranked is the order in which outcomes are written beside each other.
var ranked = []string{RefundAuto, RefundAfterApproval, NoRefundExplain, StatusOnly, Clarify, HoldForEvidence, HumanHandoff, Cancelled}

func rank(o string) int {
	if i := slices.Index(ranked, o); i >= 0 {
		return i
	}
	return len(ranked)
}

func trackOutcome(t Track, e Evidence) string {
	rec := t.record()
	switch state := stateName(rec); state {
	case AwaitingCustomer:
		return Clarify
	case VerifiedClosed, Refunded, Declined:
		if slices.ContainsFunc(e.Refunds, func(r sandbox.Refund) bool { return holds(rec.GetAction(), r) }) && t.was(amendsv1.CaseState_CASE_STATE_REFUNDED) {
			if approved(rec) {
				return RefundAfterApproval
			}
			return RefundAuto
		}
		if tellsStatus(rec) {
			return StatusOnly
		}
		return NoRefundExplain
	default:
		return state
	}
}

// tellsStatus reports that the case ended by telling how refunds stand: those
// there are, or that a question about one found none.
func tellsStatus(rec *amendsv1.CaseRecord) bool {
	if rec.GetTriage().GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_STATUS_ONLY {
		return true
	}
	d := rec.GetDecision()
	return !d.GetRefund() && slices.ContainsFunc(d.GetFacts(), func(f *amendsv1.Claim) bool {
		return f.GetKind() == amendsv1.ClaimKind_CLAIM_KIND_REFUND_EXISTS
	})
}

// sameOutcome compares outcomes as sets: two tracks that end alike are one.
func sameOutcome(want, got string) bool {
	parts := func(s string) []string {
		var out []string
		for _, p := range strings.Split(s, "+") {
			if p = strings.TrimSpace(p); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(parts(want), parts(got))
}

// byDistance are the states from the one furthest from an end.
var byDistance = []string{
	HumanHandoff, Reconciling, RefundRequested, AwaitingApproval, Investigating, Received, AwaitingCustomer, HoldForEvidence,
	Refunded, Declined, Cancelled, VerifiedClosed,
}

// finalState is the state of the request: of several cases the one that is
// furthest from its end.
func finalState(e Evidence) string {
	if e.Refused != nil {
		return Rejected
	}
	state := "no case"
	for _, t := range e.Tracks {
		s := stateName(t.record())
		if i, k := slices.Index(byDistance, s), slices.Index(byDistance, state); k < 0 || i >= 0 && i < k {
			state = s
		}
	}
	return state
}

// why says from the records what the outcome rests on.
func why(e Evidence) string {
	if e.Refused != nil {
		return fmt.Sprintf("the gateway answered %d %s", e.Refused.Status, e.Refused.Code)
	}
	var out []string
	for _, t := range e.Tracks {
		rec := t.record()
		parts := []string{"triage " + strings.Join(rec.GetTriage().GetIntents(), ", ")}
		for _, p := range []string{rec.GetTriage().GetReason(), rec.GetDecision().GetReason(), rec.GetCustody().GetReason()} {
			if p != "" {
				parts = append(parts, p)
			}
		}
		out = append(out, strings.Join(parts, "; "))
	}
	return strings.Join(out, " | ")
}

func (j *Judgement) judgeRefunds(want Expected, e Evidence) {
	for _, r := range e.Refunds {
		j.Refunds = append(j.Refunds, refundLine(r.PaymentID, r.AmountMinor, r.Currency, e.approvedFor(r)))
	}
	slices.Sort(j.Refunds)
	if !want.checksRefunds {
		j.Notes = append(j.Notes, "expected.refunds is not given: which refunds exist is not compared")
		return
	}
	left := slices.Clone(e.Refunds)
	for _, w := range want.Refunds {
		i := slices.IndexFunc(left, func(r sandbox.Refund) bool {
			return r.PaymentID == w.PaymentID && r.AmountMinor == w.AmountMinor && r.Currency == w.Currency
		})
		if i < 0 {
			j.differ("refund", wanted(w), "no such refund", "")
			continue
		}
		if by := e.approvedFor(left[i]); w.NeedsApproval != nil && by != *w.NeedsApproval {
			j.differ("refund", wanted(w), refundLine(w.PaymentID, w.AmountMinor, w.Currency, by), "")
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, r := range left {
		j.differ("refund", "none", refundLine(r.PaymentID, r.AmountMinor, r.Currency, e.approvedFor(r)), "nobody expects this one")
	}
}

func wanted(w Refund) string {
	if w.NeedsApproval == nil {
		return fmt.Sprintf("%s on %s", amountOf(w.AmountMinor, w.Currency), w.PaymentID)
	}
	return refundLine(w.PaymentID, w.AmountMinor, w.Currency, *w.NeedsApproval)
}

func refundLine(payment string, minor int64, code string, approved bool) string {
	by := "without a person"
	if approved {
		by = "approved by a person"
	}
	return fmt.Sprintf("%s on %s, %s", amountOf(minor, code), payment, by)
}

func amountOf(minor int64, code string) string {
	return fmt.Sprintf("%s (%d)", money.Format(money.New(minor, code)), minor)
}

func (j *Judgement) judgeScope(want Expected) {
	if want.checksOrders {
		w := slices.Clone(want.OrdersInScope)
		slices.Sort(w)
		if !slices.Equal(w, j.Orders) {
			j.differ("orders in scope", listed(w), listed(j.Orders), "")
		}
	}
	for _, i := range want.Intents {
		if !slices.Contains(j.Intents, i) {
			j.Notes = append(j.Notes, fmt.Sprintf("intent %s was not seen; triage saw %s", i, listed(j.Intents)))
		}
	}
	for _, i := range j.Intents {
		if want.Intents != nil && !slices.Contains(want.Intents, i) {
			j.Notes = append(j.Notes, fmt.Sprintf("intent %s is not among the expected ones", i))
		}
	}
}

func listed(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

func (j *Judgement) judgeReplies(c *Case, e Evidence) {
	said := joined(e.replies())
	told := "no reply was sent"
	if len(said) > 0 {
		told = "not in any reply"
	}
	for _, fact := range c.Expected.ReplyMustSay {
		if missing := unsaid(fact, said, c.Expected.OrdersInScope); len(missing) > 0 {
			j.differ("reply must say", fact, told, "no reply has "+strings.Join(missing, ", "))
		}
	}
	for _, words := range c.Expected.ReplyMustNot {
		if quote, ok := said.states(words); ok {
			j.differ("reply must not say", words, quote, "")
		} else if quote, ok = said.implies(words); ok {
			j.differ("reply must not say", words, quote, "said in other words")
		}
	}
}

func (j *Judgement) judgeForbidden(c *Case, e Evidence) {
	b := bench{c: c, e: e, said: joined(e.replies())}
	for _, name := range c.Forbidden {
		switch f := b.look(name); {
		case !f.judged:
			j.NotJudged = append(j.NotJudged, name)
		case f.happened:
			j.differ("forbidden", "never "+name, "it happened", f.why)
		}
	}
}
