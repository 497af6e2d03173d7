package casework

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// sliceTarget says which service each slice goes to.
var sliceTarget = map[amendsv1.Slice]roles.Service{
	amendsv1.Slice_SLICE_PAYMENT: roles.PaymentInvestigator,
	amendsv1.Slice_SLICE_POLICY:  roles.PolicySpecialist,
	amendsv1.Slice_SLICE_COMPOSE: roles.Composer,
	amendsv1.Slice_SLICE_VERIFY:  roles.Verifier,
	amendsv1.Slice_SLICE_EXECUTE: roles.RefundExecutor,
	amendsv1.Slice_SLICE_CANCEL:  roles.RefundExecutor,
	amendsv1.Slice_SLICE_CONFIRM: roles.RefundExecutor,
	amendsv1.Slice_SLICE_SETTLE:  roles.RefundExecutor,
}

// TaskID names a task of a case: task-8472-pay.
func TaskID(caseID, name string) string { return "task-" + ident.Suffix(caseID) + "-" + name }

// dispatch starts the next attempt of a task, making the node when it is new.
// It reports false, and raises the budget event, when the case may not
// delegate any more.
func (s *step) dispatch(slice amendsv1.Slice, name string) bool {
	c := s.rec.GetConsumption()
	limit := s.lim.DelegationsOf(s.rec)
	if reply := slice == amendsv1.Slice_SLICE_COMPOSE || slice == amendsv1.Slice_SLICE_VERIFY; !reply {
		limit -= s.lim.Reserve // the continuation reserve: the case can always be answered or handed over
	}
	free := byExecutor(slice)
	if !free && int(c.GetDelegations()) >= limit {
		s.failure = "delegations_spent"
		s.raise(EventBudgetSpent)
		return false
	}
	node := s.node(TaskID(s.rec.GetCaseId(), name))
	if node == nil {
		node = &amendsv1.TaskNode{
			TaskId: TaskID(s.rec.GetCaseId(), name), ParentTaskId: TaskID(s.rec.GetCaseId(), "root"),
			Slice: slice, Target: string(sliceTarget[slice]),
		}
		if effectful(slice) {
			node.ConflictsWith = []string{"order:" + orderFor(s.rec, slice)}
		}
		s.rec.Tasks = append(s.rec.Tasks, node)
	}
	if heldLast(node) {
		node.Attempts = node.GetAttempts()[:len(node.GetAttempts())-1] // it used nothing up
	}
	number := uint32(len(node.GetAttempts())) + 1 //nolint:gosec // bounded by the limits
	deadline := s.lim.Deadline
	if free {
		deadline = s.effectWait(sinceAccepted(node) + 1)
	}
	node.Status, node.Reason, node.InputVersion = amendsv1.TaskStatus_TASK_STATUS_RUNNING, "", s.rec.GetVersion()
	node.Attempts = append(node.Attempts, &amendsv1.Attempt{
		Number: number, Status: amendsv1.AttemptStatus_ATTEMPT_STATUS_DISPATCHED, DispatchedAt: s.in.GetBrokerTime(), Deadline: s.after(deadline),
		MessageId: ident.Derive(s.at, "task", s.rec.GetTenant(), s.rec.GetCaseId(), node.GetTaskId(), strconv.Itoa(int(number)), strconv.FormatUint(s.rec.GetVersion(), 10)),
	})
	if !free {
		c.Delegations++
	}
	return true
}

// sinceAccepted counts the attempts of a task's open question: those that were
// not held, since one was accepted.
func sinceAccepted(n *amendsv1.TaskNode) int {
	count := 0
	for _, a := range n.GetAttempts() {
		switch {
		case a.GetStatus() == amendsv1.AttemptStatus_ATTEMPT_STATUS_ACCEPTED:
			count = 0
		case a.GetReason() != reasonHeld:
			count++
		}
	}
	return count
}

// effectWait doubles from the effect deadline up to its maximum.
func (s *step) effectWait(attempt int) time.Duration {
	wait := s.lim.EffectDeadline
	for range min(attempt-1, 16) {
		wait = min(2*wait, s.lim.EffectDeadlineMax)
	}
	return wait
}

func (s *step) node(id string) *amendsv1.TaskNode {
	for _, n := range s.rec.GetTasks() {
		if n.GetTaskId() == id {
			return n
		}
	}
	return nil
}

// running gives the open attempt of a node, or nil.
func running(n *amendsv1.TaskNode) *amendsv1.Attempt {
	if n.GetStatus() != amendsv1.TaskStatus_TASK_STATUS_RUNNING || len(n.GetAttempts()) == 0 {
		return nil
	}
	a := n.GetAttempts()[len(n.GetAttempts())-1]
	if a.GetStatus() != amendsv1.AttemptStatus_ATTEMPT_STATUS_DISPATCHED {
		return nil
	}
	return a
}

// succeed ends the task a result is about.
func (s *step) succeed() {
	s.task.Status = amendsv1.TaskStatus_TASK_STATUS_SUCCEEDED
	s.attempt.Status = amendsv1.AttemptStatus_ATTEMPT_STATUS_ACCEPTED
}

// failAttempt ends the attempt an error or a missed deadline is about.
func (s *step) failAttempt() {
	s.attempt.Reason = clip(s.failure, 64)
	s.attempt.Status = amendsv1.AttemptStatus_ATTEMPT_STATUS_FAILED
	if s.failure == reasonTimedOut {
		s.attempt.Status = amendsv1.AttemptStatus_ATTEMPT_STATUS_TIMED_OUT
	}
}

// cancelTasks ends every open task whose slice is one of those named; all of
// them when none is.
func (s *step) cancelTasks(reason string, slices ...amendsv1.Slice) {
	for _, n := range s.rec.GetTasks() {
		if n.GetStatus() != amendsv1.TaskStatus_TASK_STATUS_RUNNING || !wanted(n.GetSlice(), slices) {
			continue
		}
		n.Status, n.Reason = amendsv1.TaskStatus_TASK_STATUS_CANCELLED, reason
		for _, a := range n.GetAttempts() {
			if a.GetStatus() == amendsv1.AttemptStatus_ATTEMPT_STATUS_DISPATCHED {
				a.Status, a.Reason = amendsv1.AttemptStatus_ATTEMPT_STATUS_CANCELLED, reason
			}
		}
	}
}

func wanted(slice amendsv1.Slice, slices []amendsv1.Slice) bool {
	for _, w := range slices {
		if w == slice {
			return true
		}
	}
	return len(slices) == 0
}

// planned reports whether every task of the plan has succeeded. What an earlier
// plan wanted, before people had the case, and this one does not is left out.
func (s *step) planned() bool {
	for _, n := range s.rec.GetTasks() {
		switch {
		case !investigative(n.GetSlice()) || n.GetStatus() == amendsv1.TaskStatus_TASK_STATUS_SUCCEEDED:
		case n.GetSlice() == amendsv1.Slice_SLICE_POLICY && s.statusOnly() && n.GetStatus() != amendsv1.TaskStatus_TASK_STATUS_RUNNING:
		default:
			return false
		}
	}
	return true
}

// statusOnly reports a plan without an action: it needs no policy.
func (s *step) statusOnly() bool {
	return s.rec.GetTriage().GetOutcome() == amendsv1.TriageOutcome_TRIAGE_OUTCOME_STATUS_ONLY
}

func investigative(slice amendsv1.Slice) bool {
	return slice == amendsv1.Slice_SLICE_PAYMENT || slice == amendsv1.Slice_SLICE_POLICY
}

// Next gives the next moment at which something is due without anybody's
// doing, or false when the case waits for nobody's clock: it is closed, or in
// a queue that people see (LIVE-1).
func Next(rec *amendsv1.CaseRecord) (time.Time, bool) {
	var next *timestamppb.Timestamp
	earliest := func(t *timestamppb.Timestamp) {
		if t != nil && (next == nil || t.AsTime().Before(next.AsTime())) {
			next = t
		}
	}
	for _, n := range rec.GetTasks() {
		if a := running(n); a != nil {
			earliest(dueAt(n, a))
		}
	}
	d := rec.GetDeadlines()
	earliest(d.GetCustomerReply())
	earliest(d.GetRecheck())
	earliest(late(d.GetApproval()))
	earliest(d.GetEffect())
	if next == nil {
		return time.Time{}, false
	}
	return next.AsTime(), true
}

const reasonTimedOut = "timed_out"

// grace is how much later than the deadline itself a missed answer or approval
// is acted on. Answers and timers come on different ways; one that the broker
// stored in time is judged by that time, and must not lose to the timer.
const grace = 10 * time.Second

func late(t *timestamppb.Timestamp) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(t.AsTime().Add(grace))
}

// dueAt says when an open attempt counts as missed. For an effect that is the
// deadline itself: asking again with the same key does no harm, and waiting
// does.
func dueAt(n *amendsv1.TaskNode, a *amendsv1.Attempt) *timestamppb.Timestamp {
	if effectful(n.GetSlice()) {
		return a.GetDeadline()
	}
	return late(a.GetDeadline())
}

// effectful: the answer says what became of an action. It counts from whichever
// attempt it comes and however late.
func effectful(slice amendsv1.Slice) bool {
	return slice == amendsv1.Slice_SLICE_EXECUTE || slice == amendsv1.Slice_SLICE_CANCEL || slice == amendsv1.Slice_SLICE_SETTLE
}

// byExecutor: the work is about money that may have moved; no budget ends it.
func byExecutor(slice amendsv1.Slice) bool {
	return effectful(slice) || slice == amendsv1.Slice_SLICE_CONFIRM
}

// dueEvent says which deadline has passed at the input's time. An attempt that
// is overdue becomes the step's task.
func (s *step) dueEvent() (Event, string) {
	passed := func(t *timestamppb.Timestamp) bool { return t != nil && !s.at.Before(t.AsTime()) }
	for _, n := range s.rec.GetTasks() {
		a := running(n)
		if a == nil || !passed(dueAt(n, a)) {
			continue
		}
		s.task, s.attempt, s.failure, s.retryable = n, a, reasonTimedOut, true
		switch {
		case effectful(n.GetSlice()):
			return EventEffectOverdue, ""
		case n.GetSlice() == amendsv1.Slice_SLICE_CONFIRM:
			return EventUnconfirmed, ""
		}
		return EventAttemptFailed, ""
	}
	d := s.rec.GetDeadlines()
	switch {
	case passed(d.GetEffect()):
		s.task, s.attempt = s.effectTask(), nil
		return EventEffectOverdue, ""
	case passed(late(d.GetApproval())):
		return EventApprovalExpired, ""
	case passed(d.GetRecheck()):
		return EventRecheckDue, ""
	case passed(d.GetCustomerReply()):
		return EventCustomerOverdue, ""
	}
	return "", ""
}

// effectTask gives what the executor is asked next: a custodian's answer it has
// not judged, the withdrawal, when there is one and nothing may have begun, else
// the action itself.
func (s *step) effectTask() *amendsv1.TaskNode {
	if n := s.node(TaskID(s.rec.GetCaseId(), settleTask)); n.GetStatus() == amendsv1.TaskStatus_TASK_STATUS_RUNNING {
		return n
	}
	if s.rec.GetCancelRevision() > 0 && !s.rec.GetOutcomeUnknown() {
		if n := s.node(TaskID(s.rec.GetCaseId(), "cancel")); n != nil {
			return n
		}
	}
	return s.executeTask()
}

// executeTask gives the task that asks for the current action. A cancel task
// only asks what became of it.
func (s *step) executeTask() *amendsv1.TaskNode {
	for i := len(s.rec.GetTasks()) - 1; i >= 0; i-- {
		if n := s.rec.GetTasks()[i]; n.GetSlice() == amendsv1.Slice_SLICE_EXECUTE {
			return n
		}
	}
	return nil
}
