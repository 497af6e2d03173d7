package casework

import (
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

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
// whose effect it does not hold.
func (s *step) liftedEvent() (Event, string, error) {
	if !Held(s.rec) {
		return "", "", ErrNothingDue
	}
	s.task = heldTask(s.rec)
	return EventStopLifted, "", nil
}

var sayLifted = Effect{"say why", func(s *step) {
	l, _ := s.in.Payload.(*amendsv1.StopLifted) // the event is raised for no other payload
	s.say("%s lifted the emergency stop; the executor is asked again with the same key", l.GetReleased().GetBy())
}}
