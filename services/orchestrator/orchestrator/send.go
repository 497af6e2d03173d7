package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// send publishes what a record wants, all at once. It may be called any number
// of times for the same record: ids derive from the record, and a view never
// replaces a newer one. An error leaves the input unacknowledged, so everything
// is sent again.
func (o *orchestrator) send(ctx context.Context, rec *amendsv1.CaseRecord, w casework.Wanted) error {
	pubs := make([]bus.Publication, 0, len(w.Tasks)+2)
	for _, t := range w.Tasks {
		if err := casework.Admit(rec, t.Payload.GetContract(), t.Envelope.GetSentAt().AsTime(), o.lim); err != nil {
			return bus.Reject("task_not_admitted", err)
		}
		data, err := envelope.Pack(t.Envelope, t.Payload)
		if err != nil {
			return bus.Reject("task_not_packable", err)
		}
		pubs = append(pubs, bus.Publication{Subject: t.Subject, Data: data})
	}
	switch {
	case w.Disarm:
		pubs = append(pubs, bus.CancelSchedule(subject.Timer(rec.GetTenant(), rec.GetCaseId())))
	case !w.Wake.IsZero():
		timer, err := timerOf(rec, w.Wake)
		if err != nil {
			return bus.Reject("timer_not_packable", err)
		}
		pubs = append(pubs, timer)
	}
	if w.View != nil {
		view, err := o.viewOf(w.View, o.views.get(subject.View(w.View.GetTenant(), w.View.GetCaseId())))
		if err != nil {
			return bus.Reject("view_not_packable", err)
		}
		pubs = append(pubs, view)
	}
	if len(pubs) == 0 {
		return nil
	}
	done := o.conn.PublishAll(ctx, pubs...)
	if w.View != nil {
		last := &done[len(done)-1]
		last.Err = o.viewStored(ctx, w.View, *last)
	}
	for _, d := range done {
		if d.Err != nil {
			return retry(d.Err)
		}
	}
	return nil
}

// resend sends everything a record wants once more, but for tasks whose
// deadline has passed by this process's clock: their receivers would refuse
// them, and the timer starts the next attempt. A task is always sent at least
// once, so that a clock that is wrong decides nothing.
func (o *orchestrator) resend(ctx context.Context, rec *amendsv1.CaseRecord) error {
	w := casework.Outgoing(rec, o.lim)
	now := o.now()
	w.Tasks = slices.DeleteFunc(w.Tasks, func(t casework.Task) bool { return !now.Before(t.Envelope.GetDeadline().AsTime()) })
	return o.send(ctx, rec, w)
}

func retry(err error) error {
	if err == nil {
		return nil
	}
	return bus.Retry(fmt.Errorf("send what the record wants: %w", err))
}

// arm sets the rolling timer of a case to its next deadline.
func (o *orchestrator) arm(ctx context.Context, rec *amendsv1.CaseRecord) error {
	next, ok := casework.Next(rec)
	if !ok {
		return nil
	}
	timer, err := timerOf(rec, next)
	if err != nil {
		return bus.Reject("timer_not_packable", err)
	}
	return retry(o.conn.PublishAll(ctx, timer)[0].Err)
}

func timerOf(rec *amendsv1.CaseRecord, wake time.Time) (bus.Publication, error) {
	data, err := envelope.Pack(casework.TimerEnvelope(rec, wake))
	return bus.Publication{
		Subject: subject.Timer(rec.GetTenant(), rec.GetCaseId()), Data: data,
		Options: []bus.PublishOption{bus.ScheduleAt(wake, subject.Due(rec.GetTenant(), rec.GetCaseId()))},
	}, err
}

// viewOf gives the publish that stores a view by compare-and-set.
func (o *orchestrator) viewOf(v *amendsv1.CaseView, expect uint64) (bus.Publication, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(v)
	if err != nil {
		return bus.Publication{}, fmt.Errorf("encode view: %w", err)
	}
	return bus.Publication{Subject: subject.View(v.GetTenant(), v.GetCaseId()), Data: data, Options: []bus.PublishOption{bus.ExpectLast(expect)}}, nil
}

// viewStored looks at what became of a view's publish. After a lost race or
// acknowledgement it looks at the stored view: one of the same or a newer
// version is left alone, an older one replaced.
func (o *orchestrator) viewStored(ctx context.Context, v *amendsv1.CaseView, done bus.Published) error {
	subj := subject.View(v.GetTenant(), v.GetCaseId())
	for range maxTries {
		if done.Err == nil {
			o.views.put(subj, done.Seq, v.GetClosed())
			return nil
		}
		if !errors.Is(done.Err, bus.ErrConflict) && !errors.Is(done.Err, bus.ErrUncertain) {
			return done.Err
		}
		expect := uint64(0)
		switch last, err := o.conn.Last(ctx, roles.StreamViews, subj); {
		case errors.Is(err, bus.ErrNotFound):
		case err != nil:
			return err
		default:
			var have amendsv1.CaseView
			if err := proto.Unmarshal(last.Data, &have); err == nil && have.GetVersion() >= v.GetVersion() {
				return nil
			}
			expect = last.Seq
		}
		again, err := o.viewOf(v, expect)
		if err != nil {
			return err
		}
		done = o.conn.PublishAll(ctx, again)[0]
	}
	return fmt.Errorf("view of case %s: %d lost races", v.GetCaseId(), maxTries)
}
