package allinone

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
)

// Auditor reads every stream and stands beside the broker: it can hold a
// consumer and moves the desk's time. No service has such an identity; it needs
// Options.Operator.
type Auditor struct {
	desk  *Desk
	js    jetstream.JetStream
	close func()
}

// Auditor connects one. Close ends it.
func (d *Desk) Auditor() (*Auditor, error) {
	js, done, err := d.Inspect()
	if err != nil {
		return nil, err
	}
	return &Auditor{desk: d, js: js, close: done}, nil
}

// Close ends the connection.
func (a *Auditor) Close() { a.close() }

// Read gives what a stream holds after a sequence, in order, with the desk's
// time of each message.
func (a *Auditor) Read(ctx context.Context, stream string, after uint64) ([]bus.Stored, error) {
	s, err := a.js.Stream(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", stream, err)
	}
	state := s.CachedInfo().State
	var out []bus.Stored
	for seq := max(after+1, state.FirstSeq); seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // replaced by a newer one of its subject
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: message %d: %w", stream, seq, err)
		}
		out = append(out, bus.Stored{Subject: m.Subject, Seq: m.Sequence, Time: a.deskTime(m.Time), Header: m.Header, Data: m.Data})
	}
	return out, nil
}

func (a *Auditor) deskTime(t time.Time) time.Time {
	if a.desk.opts.Clock == nil {
		return t
	}
	return a.desk.opts.Clock.FromBroker(t)
}

// pauseLimit bounds how long a held consumer stays so by itself.
const pauseLimit = time.Hour

// Hold stops handing out a consumer's messages, or goes on with it.
func (a *Auditor) Hold(ctx context.Context, consumer string, hold bool) error {
	spec, ok := roles.Desk().Consumer(consumer)
	if !ok {
		return fmt.Errorf("hold %s: no such consumer", consumer)
	}
	var err error
	if hold {
		_, err = a.js.PauseConsumer(ctx, spec.Stream, spec.Name, time.Now().Add(pauseLimit))
	} else {
		_, err = a.js.ResumeConsumer(ctx, spec.Stream, spec.Name)
	}
	if err != nil {
		return fmt.Errorf("hold %s: %w", consumer, err)
	}
	return nil
}

// Timers gives the armed timers by subject, with the desk's time each is due.
func (a *Auditor) Timers(ctx context.Context) (map[string]time.Time, error) {
	armed, err := a.schedules(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]time.Time, len(armed))
	for _, s := range armed {
		out[s.Subject] = s.due
	}
	return out, nil
}

// AdvanceTo moves the desk's time ahead and arms again what the broker has
// scheduled, as a broker would that lived in that time: what has come due
// fires at once. Nothing may be under way meanwhile.
func (a *Auditor) AdvanceTo(ctx context.Context, t time.Time) error {
	clock := a.desk.opts.Clock
	armed, err := a.schedules(ctx)
	if err != nil {
		return err
	}
	clock.AdvanceTo(t)
	for _, m := range armed {
		m.Header.Set(jetstream.ScheduleHeader, scheduleAt+clock.ToBroker(m.due).UTC().Format(time.RFC3339Nano))
		if _, err := a.js.PublishMsg(ctx, m.Msg); err != nil {
			return fmt.Errorf("arm %s again: %w", m.Subject, err)
		}
	}
	return nil
}

// schedule is an armed timer and the desk's time it is due.
type schedule struct {
	*nats.Msg
	due time.Time
}

const scheduleAt = "@at "

func (a *Auditor) schedules(ctx context.Context) ([]schedule, error) {
	if a.desk.opts.Clock == nil {
		return nil, errors.New("read the timers: the desk has no clock of its own")
	}
	s, err := a.js.Stream(ctx, roles.StreamTimers)
	if err != nil {
		return nil, fmt.Errorf("read the timers: %w", err)
	}
	state := s.CachedInfo().State
	var out []schedule
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the timers: message %d: %w", seq, err)
		}
		wall, err := time.Parse(scheduleAt+time.RFC3339Nano, m.Header.Get(jetstream.ScheduleHeader))
		if err != nil {
			continue // one that fired, or was cancelled
		}
		h := nats.Header{}
		for _, name := range []string{jetstream.ScheduleHeader, jetstream.ScheduleTargetHeader} {
			h.Set(name, m.Header.Get(name))
		}
		out = append(out, schedule{&nats.Msg{Subject: m.Subject, Header: h, Data: m.Data}, a.desk.opts.Clock.Meant(wall, m.Time)})
	}
	return out, nil
}
