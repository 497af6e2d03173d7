package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// send publishes what a record wants. It may be called any number of times for
// the same record: ids derive from the record, and a view never replaces
// a newer one. An error leaves the input unacknowledged, so everything is sent
// again.
func (o *orchestrator) send(ctx context.Context, rec *amendsv1.CaseRecord, w casework.Wanted) error {
	var jobs []func(context.Context) error
	for _, t := range w.Tasks {
		if err := casework.Admit(rec, t.Payload.GetContract(), t.Envelope.GetSentAt().AsTime(), o.lim); err != nil {
			return bus.Reject("task_not_admitted", err)
		}
		jobs = append(jobs, func(ctx context.Context) error {
			_, err := o.conn.Send(ctx, t.Subject, t.Envelope, t.Payload)
			return err
		})
	}
	if w.View != nil {
		jobs = append(jobs, func(ctx context.Context) error { return o.publishView(ctx, w.View) })
	}
	switch {
	case w.Disarm:
		jobs = append(jobs, func(ctx context.Context) error {
			return o.conn.CancelSchedule(ctx, subject.Timer(rec.GetTenant(), rec.GetCaseId()))
		})
	case !w.Wake.IsZero():
		jobs = append(jobs, func(ctx context.Context) error { return o.armAt(ctx, rec, w.Wake) })
	}
	return retry(parallel(ctx, jobs))
}

// parallel runs jobs side by side; a single one in place.
func parallel(ctx context.Context, jobs []func(context.Context) error) error {
	if len(jobs) == 1 {
		return jobs[0](ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, job := range jobs {
		g.Go(func() error { return job(ctx) })
	}
	return g.Wait()
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
	return retry(o.armAt(ctx, rec, next))
}

func (o *orchestrator) armAt(ctx context.Context, rec *amendsv1.CaseRecord, wake time.Time) error {
	env, due := casework.TimerEnvelope(rec, wake)
	_, err := o.conn.Send(ctx, subject.Timer(rec.GetTenant(), rec.GetCaseId()), env, due, bus.ScheduleAt(wake, subject.Due(rec.GetTenant(), rec.GetCaseId())))
	return err
}

// publishView stores a view by compare-and-set on its subject. A stored view
// of the same or a newer version is left alone.
func (o *orchestrator) publishView(ctx context.Context, v *amendsv1.CaseView) error {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode view: %w", err)
	}
	subj := subject.View(v.GetTenant(), v.GetCaseId())
	expect := o.views.get(subj)
	for range maxTries {
		seq, err := o.conn.Publish(ctx, subj, data, bus.ExpectLast(expect))
		if err == nil {
			o.views.put(subj, seq, v.GetClosed())
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) && !errors.Is(err, bus.ErrUncertain) {
			return err
		}
		last, err := o.conn.Last(ctx, roles.StreamViews, subj)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			expect = 0
			continue
		case err != nil:
			return err
		}
		var have amendsv1.CaseView
		if err := proto.Unmarshal(last.Data, &have); err == nil && have.GetVersion() >= v.GetVersion() {
			return nil
		}
		expect = last.Seq
	}
	return fmt.Errorf("view of case %s: %d lost races", v.GetCaseId(), maxTries)
}
