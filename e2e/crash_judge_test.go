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
	"duplicate_result": true, "lease_expired": true, "attempt_closed": true, "attempt_superseded": true, "late_after_cancel": true,
}

// judge checks what the streams and the provider hold when all is over.
func (d *crashDesk) judge(plan []*crash) {
	d.t.Helper()
	logs, given := d.logs(), d.given()
	if len(logs) != len(plan) {
		d.t.Errorf("LOSS-1: %d cases from %d posts", len(logs), len(plan))
	}
	made := d.made()
	for _, c := range plan {
		id := caseID(c.i)
		problems := c.judge(logs[id], given[id], made[orderID(c.i)])
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

// judge checks one case: its log (STATE-1), its inputs (LOSS-1), its refunds
// (MONEY-1, MONEY-4) and its reply.
func (c *crash) judge(log []*amendsv1.CaseCommit, given map[string]int, refunds []sandbox.Refund) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	rec, err := casework.Replay(log, casework.DefaultLimits(), payload)
	if err != nil || rec == nil {
		bad("STATE-1: %v", err)
		return problems
	}
	c.found = finding{state: casework.StateName(rec.GetState()), versions: len(rec.GetTimeline()), refunds: len(refunds)}

	rest := slices.Clone(c.story.rows)
	for _, e := range rec.GetTimeline() {
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
	if rec.GetState() != c.story.state || !casework.Closed(rec) {
		bad("LIVE-1: the case ended %s", casework.StateName(rec.GetState()))
	}
	if len(log) != len(rec.GetHandled()) {
		bad("STATE-1: %d commits for %d inputs", len(log), len(rec.GetHandled()))
	}
	applied := map[string]int{}
	for _, h := range rec.GetHandled() {
		applied[h.GetSender()+" "+h.GetMessageId()]++
		if h.GetRefused() != "" && !superseded[h.GetRefused()] {
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
	if replies := rec.GetReplies(); len(replies) != 1 {
		bad("%d replies were sent", len(replies))
	} else if got := casework.View(rec).GetReplies()[0].GetKind(); got != c.story.reply {
		bad("the reply is %q, want %q", got, c.story.reply)
	}
	if len(refunds) != c.story.refunds {
		bad("MONEY-1: %d refunds, want %d: %+v", len(refunds), c.story.refunds, refunds)
	}
	for _, r := range refunds {
		if r.PaymentID != "pay_"+orderID(c.i)+"_b" || r.AmountMinor != 200000 || r.Reference != "refund:"+caseID(c.i)+":"+r.PaymentID {
			bad("MONEY-4: refund %+v", r)
		}
		if got := rec.GetEffect().GetRefunds(); len(got) != 1 || got[0].GetOutcome().GetRefundId() != r.RefundID {
			bad("TRUTH-2: the record does not name the refund %s: %v", r.RefundID, got)
		}
	}
	return problems
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

// made are the provider's refunds, by order.
func (d *crashDesk) made() map[string][]sandbox.Refund {
	d.t.Helper()
	l, err := d.Provider.Ledger(d.ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	out := map[string][]sandbox.Refund{}
	for _, r := range l.Refunds {
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
