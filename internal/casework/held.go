package casework

import (
	"time"

	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// While the stop switch is set the desk asks again after heldRetry, then after as
// long as the case has been held, up to heldRetryMax, or an eighth of that time
// when it is more: a stop of any length takes few of a record's versions.
const (
	heldRetry    = 5 * time.Minute
	heldRetryMax = time.Hour
	heldShare    = 8
)

func heldWait(held time.Duration) time.Duration {
	return max(heldRetry, min(held, heldRetryMax), held/heldShare)
}

// reasonHeld marks an attempt that met the stop switch: it used nothing up.
const reasonHeld = "held"

// heldLast reports whether the newest attempt of a task met the stop: the next
// one takes its place.
func heldLast(n *amendsv1.TaskNode) bool {
	a := n.GetAttempts()
	return effectful(n.GetSlice()) && len(a) > 0 && a[len(a)-1].GetReason() == reasonHeld
}

// Held reports whether the emergency stop holds the case's effect: the newest
// thing the executor was asked for met the stop.
func Held(rec *amendsv1.CaseRecord) bool {
	switch rec.GetState() {
	case requested, reconciling:
		return heldTask(rec) != nil
	default:
		return false
	}
}

// heldTask gives the task whose newest attempt met the stop, nil when the
// executor was asked for something else since.
func heldTask(rec *amendsv1.CaseRecord) *amendsv1.TaskNode {
	var newest *amendsv1.TaskNode
	var last *amendsv1.Attempt
	for _, n := range rec.GetTasks() {
		if !effectful(n.GetSlice()) || len(n.GetAttempts()) == 0 {
			continue
		}
		a := n.GetAttempts()[len(n.GetAttempts())-1]
		if last == nil || !a.GetDispatchedAt().AsTime().Before(last.GetDispatchedAt().AsTime()) {
			newest, last = n, a
		}
	}
	if last.GetReason() != reasonHeld {
		return nil
	}
	return newest
}

// liftedEvent is the news that the stop was lifted; nothing is due to a case
// whose effect it does not hold, or that another tenant's switch is about.
func (s *step) liftedEvent() (Event, string, error) {
	l, _ := s.in.Payload.(*amendsv1.StopLifted) // asked for no other payload
	scope := l.GetReleased().GetScope()
	mine := scope == subject.StopAll || scope == s.rec.GetTenant()
	if !Held(s.rec) || !mine || l.GetReleased().GetStopped() || s.in.sender() != string(roles.Orchestrator) {
		return "", "", ErrNothingDue
	}
	s.task = heldTask(s.rec)
	return EventStopLifted, "", nil
}

var sayLifted = Effect{"say why", func(s *step) {
	l, _ := s.in.Payload.(*amendsv1.StopLifted) // the event is raised for no other payload
	s.rec.HeldSince = nil
	s.say("%s lifted the emergency stop; the executor is asked again with the same key", l.GetReleased().GetBy())
}}
