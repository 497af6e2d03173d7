package e2e_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/sandbox"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// finding is what became of a case.
type finding struct {
	state    string
	versions int
	refunds  int
	// extra are the rows besides the story's: what a wait let expire.
	extra []string
}

// tolerated are the rows a case may follow besides its story's. A killed process
// keeps its input for the AckWait; the same work is handed out again meanwhile,
// by the sweep of the process that follows or because its deadline passed, and
// what comes twice is refused.
var tolerated = map[string]bool{
	"attempt.retried": true, "reply.attempt.retried": true, "effect.overdue": true, "effect.attempt.failed": true, "input.refused": true,
}

// superseded are the reasons for which an input may be refused then.
var superseded = map[string]bool{
	"duplicate_result": true, "lease_expired": true, "attempt_closed": true, "attempt_superseded": true, "late_after_cancel": true, "case_closed": true,
}

// judge checks what the streams and the provider hold when all is over.
func (d *crashDesk) judge(plan []*crash) {
	d.t.Helper()
	logs, given := d.logs(), d.given()
	if len(logs) != len(plan) {
		d.t.Errorf("LOSS-1: %d cases from %d posts", len(logs), len(plan))
	}
	made, begun := d.made(), d.begun()
	for _, c := range plan {
		id := caseID(c.i)
		problems := c.judge(logs[id], given[id], made[orderID(c.i)], begun[orderID(c.i)])
		problems = append(problems, d.wire.sameCalls(orderID(c.i), id, c.story.given(c.i))...)
		if len(c.killed) != c.times {
			problems = append(problems, fmt.Sprintf("%s was killed %d times, want %d: the run shows nothing", c.service, len(c.killed), c.times))
		}
		for _, p := range problems {
			d.t.Errorf("%s: %s", c.name(), p)
		}
		if len(problems) > 0 {
			d.t.Logf("%s, case %s:\n%s", c.name(), id, told(logs[id]))
		}
	}
	d.noDeadLetters()
}

// judge checks one case: its log (STATE-1), its inputs (LOSS-1), its end
// (LIVE-1), its refunds and its reply.
func (c *crash) judge(log []*amendsv1.CaseCommit, given map[string]int, refunds []sandbox.Refund, intents []*amendsv1.EffectIntent) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	rec, err := casework.Replay(log, casework.DefaultLimits(), payload)
	if err != nil || rec == nil {
		bad("STATE-1: %v", err)
		return problems
	}
	c.found = finding{state: casework.StateName(rec.GetState()), versions: len(rec.GetTimeline()), refunds: len(refunds)}

	rest := slices.Clone(c.story.rows)
	for _, e := range rec.GetTimeline() {
		for len(rest) > 0 && len(c.killed) > 0 && e.GetRow() != rest[0] && slices.Contains(c.story.maybe, rest[0]) && !tolerated[e.GetRow()] {
			rest = rest[1:]
		}
		if len(rest) > 0 && e.GetRow() == rest[0] {
			rest = rest[1:]
			continue
		}
		c.found.extra = append(c.found.extra, e.GetRow())
		if !tolerated[e.GetRow()] {
			bad("STATE-1: v%d follows the row %s", e.GetVersion(), e.GetRow())
		}
	}
	if len(rest) > 0 {
		bad("LOSS-1: the case never followed %v", rest)
	}
	if ended := casework.Closed(rec) || rec.GetCustody().GetQueue() == casework.QueueHandoff; rec.GetState() != c.story.state || !ended {
		bad("LIVE-1: the case ended %s", casework.StateName(rec.GetState()))
	}
	if len(log) != len(rec.GetHandled()) {
		bad("STATE-1: %d commits for %d inputs", len(log), len(rec.GetHandled()))
	}
	applied := map[string]int{}
	for _, h := range rec.GetHandled() {
		applied[h.GetSender()+" "+h.GetMessageId()]++
		tooLate := slices.Contains(c.story.maybe, "cancel.requested") && strings.HasPrefix(h.GetRefused(), "not_expected_in_")
		if h.GetRefused() != "" && !superseded[h.GetRefused()] && !tooLate {
			bad("LOSS-1: an input of %s was refused: %s", h.GetSender(), h.GetRefused())
		}
	}
	for key, times := range applied {
		if times != 1 {
			bad("LOSS-1: %s was applied %d times", key, times)
		}
	}
	for key := range given {
		if applied[key] == 0 {
			bad("LOSS-1: %s was accepted and is not in the record", key)
		}
	}
	if replies := casework.View(rec).GetReplies(); len(replies) != count(c.story.rows, "draft.returned") {
		bad("%d replies were sent", len(replies))
	} else if got := replies[len(replies)-1].GetKind(); got != c.story.reply {
		bad("the reply is %q, want %q", got, c.story.reply)
	}
	return append(problems, c.money(rec, refunds, intents)...)
}

// money checks what the provider has against what the story gives back, what
// the executor noted before, and what the case says (MONEY-1, MONEY-2, MONEY-4,
// TRUTH-2).
func (c *crash) money(rec *amendsv1.CaseRecord, refunds []sandbox.Refund, intents []*amendsv1.EffectIntent) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	want := c.story.given(c.i)
	var paid []string
	for _, r := range refunds {
		paid = append(paid, r.PaymentID)
		if r.AmountMinor != c.story.minor || r.Reference != "refund:"+caseID(c.i)+":"+r.PaymentID {
			bad("MONEY-4: refund %+v", r)
		}
		at := slices.IndexFunc(intents, func(in *amendsv1.EffectIntent) bool { return in.GetIdempotencyKey() == r.Reference })
		switch {
		case at < 0 || intents[at].GetBegunAt().AsTime().After(r.CreatedAt):
			bad("MONEY-2: refund %s was made and not begun before", r.RefundID)
		case c.story.approved != (len(intents[at].GetApprovalIds()) > 0):
			bad("MONEY-2: refund %s spent %v", r.RefundID, intents[at].GetApprovalIds())
		case intents[at].GetOutcome().GetRefundId() != r.RefundID:
			bad("MONEY-3: the effect ledger does not name refund %s: %v", r.RefundID, intents[at].GetOutcome())
		}
		named := func(got *amendsv1.RefundResult) bool { return got.GetOutcome().GetRefundId() == r.RefundID }
		if !slices.ContainsFunc(rec.GetEffect().GetRefunds(), named) {
			bad("TRUTH-2: the record does not name the refund %s: %v", r.RefundID, rec.GetEffect())
		}
	}
	slices.Sort(paid)
	if !slices.Equal(paid, want) {
		bad("MONEY-1: refunds of %q, want %q: %+v", paid, want, refunds)
	}
	if len(intents) != len(want) {
		bad("MONEY-2: %d intents, want %d: %v", len(intents), len(want), intents)
	}
	if len(want) == 0 {
		for _, r := range rec.GetEffect().GetRefunds() {
			if r.GetOutcome().GetRefundId() != "" {
				bad("TRUTH-2: the record names a refund that is not: %v", r)
			}
		}
	}
	return problems
}

// begun are the intents of the executor's ledger, by order.
func (d *crashDesk) begun() map[string][]*amendsv1.EffectIntent {
	d.t.Helper()
	out := map[string][]*amendsv1.EffectIntent{}
	d.read(roles.StreamEffects, func(m jetstream.Msg) {
		if strings.HasSuffix(m.Subject(), ".cap") {
			return
		}
		var e amendsv1.EffectEntry
		if err := proto.Unmarshal(m.Data(), &e); err != nil {
			d.t.Fatal(err)
		}
		out[e.GetOrderId()] = e.GetIntents()
	})
	return out
}

// given are the messages INTAKE and RESULTS hold for each case, by sender and
// id, with how often each is stored.
func (d *crashDesk) given() map[string]map[string]int {
	d.t.Helper()
	out := map[string]map[string]int{}
	for _, stream := range []string{roles.StreamIntake, roles.StreamResults} {
		d.read(stream, func(m jetstream.Msg) {
			var env amendsv1.Envelope
			if err := proto.Unmarshal(m.Data(), &env); err != nil {
				d.t.Fatal(err)
			}
			if out[env.GetCaseId()] == nil {
				out[env.GetCaseId()] = map[string]int{}
			}
			out[env.GetCaseId()][env.GetSender()+" "+env.GetMessageId()]++
		})
	}
	return out
}

// made are the refunds the desk had the provider make, by order.
func (d *crashDesk) made() map[string][]sandbox.Refund {
	d.t.Helper()
	l, err := d.Provider.Ledger(d.ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	out := map[string][]sandbox.Refund{}
	for _, r := range l.Refunds {
		if strings.HasPrefix(r.RefundID, elsewhere) {
			continue
		}
		out[r.OrderID] = append(out[r.OrderID], r)
	}
	return out
}

// told writes a case's log for people.
func told(log []*amendsv1.CaseCommit) string {
	var b strings.Builder
	for _, c := range log {
		for _, in := range c.GetInputs() {
			fmt.Fprintf(&b, "%s  %s %s %s\n", in.GetBrokerTime().AsTime().Format("15:04:05.000"), in.GetEnvelope().GetSender(), in.GetEnvelope().GetType(), in.GetEnvelope().GetMessageId())
		}
		for _, e := range c.GetRecord().GetTimeline()[c.GetFirstVersion()-1:] {
			fmt.Fprintf(&b, "    v%d %s by %s: %s\n", e.GetVersion(), casework.StateName(e.GetState()), e.GetRow(), e.GetNote())
		}
	}
	return b.String()
}
