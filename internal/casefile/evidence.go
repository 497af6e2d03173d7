package casefile

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Evidence is what a request left behind on a desk that had no other.
type Evidence struct {
	// Refused is the gateway's answer when it did not take the message.
	Refused *Refusal
	// Tracks are the cases of the request, by id.
	Tracks []Track
	// Refunds are those that exist at the provider and were not put there by
	// the case file.
	Refunds []sandbox.Refund
	// Known is what the case file put there, later changes included.
	Known sandbox.Ledger
	// Stored is everything the broker's streams hold.
	Stored []Message
	// Decisions are the ones approvers handed in, in order.
	Decisions []Decision
	// Pages are the staff pages of the cases, as HTML.
	Pages []string
	// Logs is what the services logged.
	Logs string
}

// Refusal is an answer of the gateway that is no acceptance.
type Refusal struct {
	Status int
	Code   string
}

// Track is one case of the request.
type Track struct {
	CaseID string
	// Commits are its log; the last holds the newest record.
	Commits []*amendsv1.CaseCommit
	// State and Replies are the customer's view of it.
	State   string
	Replies []string
}

// Message is a stored message of the broker.
type Message struct {
	Stream, Subject string
	Header          map[string][]string
	Data            []byte
}

// Decision is a signed decision that was handed in.
type Decision struct {
	ApprovalID, MessageID string
	Approves              bool
	// Old, Altered and Forged say that it was not about exactly what was shown
	// then, or not by who it names. Cancelled: the case was withdrawn before.
	Old, Altered, Forged bool
	Cancelled, Expired   bool
	// Refused is why the console did not take it.
	Refused string
}

// record is the newest record of a track.
func (t Track) record() *amendsv1.CaseRecord {
	if len(t.Commits) == 0 {
		return nil
	}
	return t.Commits[len(t.Commits)-1].GetRecord()
}

// was reports that a case was in a state at some version.
func (t Track) was(state amendsv1.CaseState) bool {
	return slices.ContainsFunc(t.record().GetTimeline(), func(e *amendsv1.TimelineEntry) bool { return e.GetState() == state })
}

// replies are all texts that were sent.
func (e Evidence) replies() []string {
	var out []string
	for _, t := range e.Tracks {
		out = append(out, t.Replies...)
	}
	return out
}

// orders are the orders the cases took up.
func (e Evidence) orders() []string {
	var out []string
	for _, t := range e.Tracks {
		for _, c := range t.Commits {
			if id := c.GetRecord().GetTriage().GetOrderId(); id != "" && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return out
}

// scope are the orders the cases are about at the end.
func (e Evidence) scope() []string {
	var out []string
	for _, t := range e.Tracks {
		if id := t.record().GetTriage().GetOrderId(); id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (e Evidence) intents() []string {
	var out []string
	for _, t := range e.Tracks {
		for _, i := range t.record().GetTriage().GetIntents() {
			if !slices.Contains(out, i) {
				out = append(out, i)
			}
		}
	}
	return out
}

// approvedFor reports that a refund was asked for under a person's approval of
// exactly the action that holds it: the approval stands in the record before
// the first version that asks for the refund.
func (e Evidence) approvedFor(r sandbox.Refund) bool {
	for _, t := range e.Tracks {
		for _, c := range t.Commits {
			rec := c.GetRecord()
			if rec.GetState() != amendsv1.CaseState_CASE_STATE_REFUND_REQUESTED {
				continue
			}
			if !holds(rec.GetAction(), r) {
				continue
			}
			return approved(rec)
		}
	}
	return false
}

func holds(a *amendsv1.ActionRecord, r sandbox.Refund) bool {
	return slices.ContainsFunc(a.GetRefunds(), func(x *amendsv1.ActionRefund) bool {
		return x.GetIdempotencyKey() == r.Reference && x.GetPaymentId() == r.PaymentID &&
			x.GetAmount().GetMinor() == r.AmountMinor && x.GetAmount().GetCurrency() == r.Currency
	})
}

func approved(rec *amendsv1.CaseRecord) bool {
	n := 0
	for _, d := range rec.GetApprovals() {
		if d.GetVerdict() == amendsv1.Verdict_VERDICT_APPROVE && d.GetActionSha256() == rec.GetActionSha256() {
			n++
		}
	}
	return n > 0 && n >= int(rec.GetDecision().GetApproversNeeded())
}

// tasks gives what was handed to the specialists and the executor.
func (e Evidence) tasks() []*amendsv1.TaskAssign {
	var out []*amendsv1.TaskAssign
	for _, m := range e.Stored {
		if m.Stream != "TASKS" {
			continue
		}
		env, task := new(amendsv1.Envelope), new(amendsv1.TaskAssign)
		if proto.Unmarshal(m.Data, env) == nil && proto.Unmarshal(env.GetPayload(), task) == nil {
			out = append(out, task)
		}
	}
	return out
}

// intentsOfEffect gives what the executor began.
func (e Evidence) effects() []*amendsv1.EffectIntent {
	byKey := map[string]*amendsv1.EffectIntent{}
	var keys []string
	for _, m := range e.Stored {
		if m.Stream != "EFFECTS" || strings.HasSuffix(m.Subject, ".cap") {
			continue
		}
		entry := new(amendsv1.EffectEntry)
		if proto.Unmarshal(m.Data, entry) != nil {
			continue
		}
		for _, in := range entry.GetIntents() {
			if byKey[in.GetIdempotencyKey()] == nil {
				keys = append(keys, in.GetIdempotencyKey())
			}
			byKey[in.GetIdempotencyKey()] = in
		}
	}
	out := make([]*amendsv1.EffectIntent, 0, len(keys))
	for _, k := range keys {
		out = append(out, byKey[k])
	}
	return out
}

// calls are the look-ups the desk's own registry recorded.
func (t Track) calls() []*amendsv1.ToolCall {
	var out []*amendsv1.ToolCall
	for _, c := range t.Commits {
		rec := c.GetRecord()
		out = append(out, rec.GetPayment().GetCalls()...)
		out = append(out, rec.GetPolicy().GetCalls()...)
		out = append(out, rec.GetVerification().GetCalls()...)
	}
	return out
}

// refusedDecision gives why the desk refused a decision; counted says that it
// took it.
func (e Evidence) refusedDecision(d Decision) (reason string, judged bool) {
	for _, t := range e.Tracks {
		for _, h := range t.record().GetHandled() {
			if h.GetMessageId() == d.MessageID {
				return h.GetRefused(), true
			}
		}
	}
	return "", false
}

func stateName(rec *amendsv1.CaseRecord) string { return casework.StateName(rec.GetState()) }
