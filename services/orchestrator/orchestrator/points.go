package orchestrator

import (
	"context"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Point is a place in the handling of one input. Wherever the process dies, the
// input is taken in once and what it causes happens once (LOSS-1, STATE-1).
type Point string

// The points, in the order in which an input passes them. One that finds its
// input in the record already passes from CaseLoaded to what is sent. What a
// record does not want is not sent, and its point not passed.
const (
	// InputTaken: the input is in hand and nothing is done.
	InputTaken Point = "input_taken"
	// CaseLoaded: the record is loaded, or known not to exist.
	CaseLoaded Point = "case_loaded"
	// LookedUp: triage, owner and approver are looked up.
	LookedUp Point = "looked_up"
	// Decided: the new versions are made and only this process has them.
	Decided Point = "decided"
	// CommitSent: the broker has the commit, its answer is not looked at.
	CommitSent Point = "commit_sent"
	// Committed: the compare-and-set succeeded, nothing is sent.
	Committed Point = "committed"
	// TaskSent, TimerSent and ViewSent are passed inside the flight: that
	// message is with the broker, and the ones after it are not sent.
	TaskSent  Point = "task_sent"
	TimerSent Point = "timer_sent"
	ViewSent  Point = "view_sent"
	// AllSent: everything is stored, the input is not acknowledged.
	AllSent Point = "all_sent"
	// Acknowledged: the broker has the input's acknowledgement.
	Acknowledged Point = "acknowledged"
)

// Points lists them: ten before the acknowledgement, and the one after.
func Points() []Point {
	return []Point{InputTaken, CaseLoaded, LookedUp, Decided, CommitSent, Committed, TaskSent, TimerSent, ViewSent, AllSent, Acknowledged}
}

// reached tells a test that the handling of an input is at a point.
func (o *orchestrator) reached(ctx context.Context, p Point, in *amendsv1.Envelope) {
	if o.tell != nil {
		o.tell(ctx, p, in)
	}
}

// watched has the points inside a flight told.
func (o *orchestrator) watched(ctx context.Context, in *amendsv1.Envelope) context.Context {
	if o.tell == nil {
		return ctx
	}
	return bus.WithSent(ctx, func(subj string) {
		parts, err := subject.Parse(subj)
		if err != nil {
			return // a read
		}
		switch parts.Kind {
		case subject.KindCase:
			o.tell(ctx, CommitSent, in)
		case subject.KindTask:
			o.tell(ctx, TaskSent, in)
		case subject.KindTimer:
			o.tell(ctx, TimerSent, in)
		case subject.KindView:
			o.tell(ctx, ViewSent, in)
		default:
		}
	})
}
