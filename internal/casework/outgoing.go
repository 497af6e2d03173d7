package casework

import (
	"strconv"
	"time"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Wanted is what the newest record still wants in the world.
type Wanted struct {
	Tasks []Task
	// View is the customer-facing snapshot; always there.
	View *amendsv1.CaseView
	// Wake is when the case must be looked at again; zero when nothing is due.
	Wake time.Time
	// Disarm: the wake-up armed for the record before is not wanted any more.
	Disarm bool
}

// Task is one open attempt; sealing it says of which type and version it is.
type Task struct {
	Subject  string
	Envelope *amendsv1.Envelope
	Payload  *amendsv1.TaskAssign
}

// Outgoing gives everything a record still wants sent. It is a pure function:
// the ids of what it gives derive from the record, so sending it again is the
// same work again and never more.
func Outgoing(rec *amendsv1.CaseRecord, lim Limits) Wanted {
	w := Wanted{View: View(rec)}
	for _, n := range rec.GetTasks() {
		if a := running(n); a != nil {
			w.Tasks = append(w.Tasks, task(rec, n, a, lim))
		}
	}
	if next, ok := Next(rec); ok {
		w.Wake = next
	}
	return w
}

// Delta gives what next wants and prev did not: all that must be sent after
// the commit that led from prev to next. It leaves out what was sent for prev;
// whoever committed prev sent it, or its input comes again and all of Outgoing
// is sent. An armed wake-up that is early enough is kept: an early timer is
// a hint to look, and arms the next one.
func Delta(prev, next *amendsv1.CaseRecord, lim Limits) Wanted {
	w := Outgoing(next, lim)
	if prev == nil {
		return w
	}
	sent := map[string]bool{}
	for _, n := range prev.GetTasks() {
		if a := running(n); a != nil {
			sent[a.GetMessageId()] = true
		}
	}
	fresh := w.Tasks[:0]
	for _, t := range w.Tasks {
		if !sent[t.Envelope.GetMessageId()] {
			fresh = append(fresh, t)
		}
	}
	w.Tasks = fresh
	if visible(prev) == w.View.GetVersion() {
		w.View = nil
	}
	armed, ok := Next(prev)
	switch {
	case ok && w.Wake.IsZero():
		w.Disarm = true
	case ok && armed.After(next.GetUpdatedAt().AsTime()) && !w.Wake.Before(armed):
		w.Wake = time.Time{}
	}
	return w
}

func task(rec *amendsv1.CaseRecord, n *amendsv1.TaskNode, a *amendsv1.Attempt, lim Limits) Task {
	t := terms[n.GetSlice()]
	return Task{
		Subject: subject.Task(n.GetTarget(), rec.GetTenant(), rec.GetCaseId()),
		Envelope: &amendsv1.Envelope{
			MessageId: a.GetMessageId(), CaseId: rec.GetCaseId(), Tenant: rec.GetTenant(), RequestId: rec.GetRequestId(),
			TaskId: n.GetTaskId(), ParentTaskId: n.GetParentTaskId(), Sender: string(roles.Orchestrator), Recipient: n.GetTarget(),
			Purpose: t.purpose, CustomerId: rec.GetCustomerId(), Capability: t.capability,
			Deadline: a.GetDeadline(), Attempt: a.GetNumber(), IdempotencyKey: n.GetTaskId() + ":attempt-" + strconv.Itoa(int(a.GetNumber())),
			BasedOnVersion: n.GetInputVersion(), TraceId: rec.GetTraceId(), Hop: 1, SentAt: a.GetDispatchedAt(),
		},
		Payload: assignment(rec, n, a, lim),
	}
}

// TimerEnvelope is the body of the rolling timer of a case.
func TimerEnvelope(rec *amendsv1.CaseRecord, wake time.Time) (*amendsv1.Envelope, *amendsv1.TimerDue) {
	return &amendsv1.Envelope{
		MessageId: ident.Derive(wake, "timer", rec.GetTenant(), rec.GetCaseId(), strconv.FormatUint(rec.GetVersion(), 10)),
		CaseId:    rec.GetCaseId(), Tenant: rec.GetTenant(), RequestId: rec.GetRequestId(),
		Sender: string(roles.Orchestrator), Recipient: string(roles.Orchestrator),
		TraceId: rec.GetTraceId(),
	}, &amendsv1.TimerDue{ArmedAtVersion: rec.GetVersion()}
}

// visible gives the last version that changed something in the view: the
// state, a reply, where the matter goes on, or which messages were handled.
func visible(rec *amendsv1.CaseRecord) uint64 {
	var v uint64
	last := none
	for _, t := range rec.GetTimeline() {
		if t.GetState() != last || t.GetRow() == rowContinued {
			v, last = t.GetVersion(), t.GetState()
		}
	}
	for _, r := range rec.GetReplies() {
		v = max(v, r.GetVersion())
	}
	return max(v, lastMessage(rec))
}

// View gives the customer-facing snapshot of a record. Its version is the last
// one that changed something in it.
func View(rec *amendsv1.CaseRecord) *amendsv1.CaseView {
	v := &amendsv1.CaseView{
		Tenant: rec.GetTenant(), CaseId: rec.GetCaseId(), RequestId: rec.GetRequestId(), CustomerId: rec.GetCustomerId(),
		Version: visible(rec), State: StateName(rec.GetState()), OrderId: rec.GetTriage().GetOrderId(),
		OpenedAt: rec.GetOpenedAt(), UpdatedAt: rec.GetUpdatedAt(), Closed: Closed(rec), TraceId: rec.GetTraceId(), BodySha256: rec.GetBodySha256(),
		Channel: rec.GetChannel(), Next: nextWord(rec), ContinuedByCaseId: rec.GetContinuedByCaseId(),
		Messages: viewMessages(rec),
	}
	if st := rec.GetState(); st == handoff || st == reconciling {
		v.Queue = rec.GetCustody().GetQueue()
	}
	last := none
	for _, t := range rec.GetTimeline() {
		if t.GetState() != last {
			v.Timeline = append(v.Timeline, &amendsv1.ViewEntry{Version: t.GetVersion(), State: StateName(t.GetState()), At: t.GetAt()})
			last = t.GetState()
		}
		if t.GetVersion() == v.GetVersion() {
			v.UpdatedAt = t.GetAt()
		}
	}
	for _, r := range rec.GetReplies() {
		v.Replies = append(v.Replies, &amendsv1.ViewReply{
			Kind: replyWord(r.GetKind()), Text: r.GetText(), SentAt: r.GetSentAt(), Version: r.GetVersion(),
		})
	}
	switch rec.GetState() {
	case awaitCustomer:
		v.NextAt = rec.GetDeadlines().GetCustomerReply()
	case holding:
		v.NextAt = rec.GetDeadlines().GetRecheck()
	default: // nothing the customer could wait for is dated
	}
	return v
}

// nextWord says whose turn it is, in the customer's terms.
func nextWord(rec *amendsv1.CaseRecord) string {
	switch rec.GetState() {
	case awaitCustomer:
		return "your_answer"
	case holding:
		return "recheck"
	case handoff, reconciling, awaitApproval:
		return "a_person"
	case closed:
		return ""
	case cancelled:
		if Closed(rec) {
			return ""
		}
		return "the_desk"
	default:
		return "the_desk"
	}
}

var replyWords = map[amendsv1.ReplyKind]string{
	amendsv1.ReplyKind_REPLY_KIND_CLARIFY: "clarify", amendsv1.ReplyKind_REPLY_KIND_HOLDING: "holding",
	amendsv1.ReplyKind_REPLY_KIND_REFUNDED: "refunded", amendsv1.ReplyKind_REPLY_KIND_EXPLAIN: "explain",
	amendsv1.ReplyKind_REPLY_KIND_CANCELLED: "cancelled", amendsv1.ReplyKind_REPLY_KIND_HANDOFF: "handoff",
	amendsv1.ReplyKind_REPLY_KIND_WRITTEN: "written",
}

func replyWord(k amendsv1.ReplyKind) string { return replyWords[k] }
