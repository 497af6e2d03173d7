package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// stopsEvery is how often the switches of the emergency stop are looked at.
	stopsEvery = time.Second
	// maxSwitches bounds how many changed switches one look takes in.
	maxSwitches = 1_000
	// stopMargin is how much earlier than the stop commits are looked for: the
	// clocks of a cluster's brokers differ.
	stopMargin = time.Minute
	// maxTellTries bounds how often a held case is told of a release; its own
	// deadline brings it to the executor as well.
	maxTellTries = 30
)

// stopSwitch is a switch as CONTROL has it; nil when it cannot be understood,
// which is a stop.
type stopSwitch struct {
	*amendsv1.StopSwitch
	seq uint64
	at  time.Time
}

func (s stopSwitch) stops() bool { return s.StopSwitch == nil || s.GetStopped() }

// watcher follows the switches and tells held cases when nothing holds them any
// more.
type watcher struct {
	*orchestrator
	seen     uint64
	switches map[string]stopSwitch // by subject
	// since is when the first of the stops was set whose commits are still to be
	// walked again.
	since time.Time
	// anew: another broker may answer, with other sequences.
	anew atomic.Bool
}

// watchStops runs until ctx ends. What a look cannot do the next one does.
func (o *orchestrator) watchStops(ctx context.Context) error {
	w := &watcher{orchestrator: o, switches: map[string]stopSwitch{}}
	o.conn.OnServerChange(func() { w.anew.Store(true) })
	tick := time.NewTicker(stopsEvery)
	defer tick.Stop()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			o.log.WarnContext(ctx, "following the emergency stop failed; it is done again", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look takes in what changed and tells the cases that nothing holds any more.
// The cases are listed first: whatever held them is then among the switches.
func (w *watcher) look(ctx context.Context) error {
	waiting := w.held.list()
	if err := w.follow(ctx); err != nil {
		return err
	}
	var g errgroup.Group // without a shared end: one case that fails holds up no other
	g.SetLimit(resendWorkers)
	told := 0
	for _, c := range waiting {
		released, ok := w.released(c.tenant)
		if !ok {
			continue
		}
		told++
		g.Go(func() error {
			err := w.lift(ctx, c, released)
			if ctx.Err() == nil {
				w.held.told(c, err)
			}
			return err
		})
	}
	err := g.Wait()
	if told > 0 {
		w.log.InfoContext(ctx, "held cases go on", slog.Int("cases", told))
	}
	return err
}

// follow reads the switches that changed since the last look.
func (w *watcher) follow(ctx context.Context) error {
	if w.anew.Swap(false) {
		w.seen = 0
		clear(w.switches)
	}
	first := w.seen == 0 // after a start and a change of brokers everything is walked
	for range maxSwitches {
		m, err := w.conn.NextAfter(ctx, roles.StreamControl, subject.Control("*"), w.seen)
		if errors.Is(err, bus.ErrNotFound) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the stop switches: %w", err)
		}
		s := stopSwitch{StopSwitch: new(amendsv1.StopSwitch), seq: m.Seq, at: m.Time}
		if proto.Unmarshal(m.Data, s.StopSwitch) != nil || subject.Control(s.GetScope()) != m.Subject {
			s.StopSwitch = nil
		}
		since := s.at
		if was, known := w.switches[m.Subject]; known && was.stops() {
			since = was.at
		}
		if !s.stops() && !first && (w.since.IsZero() || since.Before(w.since)) {
			w.since = since
		}
		w.switches[m.Subject], w.seen = s, m.Seq
	}
	if w.since.IsZero() {
		return nil
	}
	if err := w.walkSince(ctx, w.since.Add(-stopMargin)); err != nil {
		return err
	}
	w.since = time.Time{}
	return nil
}

// walkSince has the sweeper walk again what was committed since a stop was set:
// what it held is among that. A walk that is asked for already then begins at the
// earlier of the two.
func (w *watcher) walkSince(ctx context.Context, t time.Time) error {
	every := subject.Case("*", "*")
	newest, err := w.conn.Last(ctx, roles.StreamCases, every)
	if errors.Is(err, bus.ErrNotFound) {
		return nil // there are no cases
	}
	if err != nil {
		return fmt.Errorf("find the commits since a stop: %w", err)
	}
	before, from := uint64(0), newest.Seq // the first commit since then is after the one and not after the other
	for before+1 < from {
		middle := before + (from-before)/2
		m, err := w.conn.NextAfter(ctx, roles.StreamCases, every, middle-1)
		if err != nil {
			return fmt.Errorf("find the commits since a stop: %w", err)
		}
		if m.Time.Before(t) {
			before = m.Seq
		} else {
			from = middle
		}
	}
	select {
	case asked := <-w.rewalk:
		from = min(from, asked)
	default:
	}
	w.rewalk <- from // has room: nobody else asks
	return nil
}

// released gives the newest of the switches over a tenant, if neither stops it.
func (w *watcher) released(tenant string) (stopSwitch, bool) {
	own, ownKnown := w.switches[subject.Control(tenant)]
	all, allKnown := w.switches[subject.Control(subject.StopAll)]
	switch {
	case ownKnown && own.stops(), allKnown && all.stops(), !ownKnown && !allKnown:
		return stopSwitch{}, false
	case own.seq > all.seq:
		return own, true
	}
	return all, true
}

// lift gives a case the news of a release, by the commit protocol. Told again
// it is the same message.
func (w *watcher) lift(ctx context.Context, c heldCase, s stopSwitch) error {
	ctx, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	// Not the switch's time: after a restart that may be long ago, and what the
	// executor is asked for would be too late when it is sent.
	now, err := w.conn.Time(ctx, roles.ConsumerDue)
	if err != nil {
		return err
	}
	env := &amendsv1.Envelope{
		MessageId: ident.Derive(s.at, envelope.StopLifted, s.GetScope(), strconv.FormatUint(s.seq, 10), c.tenant, c.id),
		CaseId:    c.id, Tenant: c.tenant, RequestId: c.request, CustomerId: c.customer, TraceId: c.trace,
		Sender: string(roles.Orchestrator), Recipient: string(roles.Orchestrator),
	}
	news := &amendsv1.StopLifted{Released: s.StopSwitch}
	data, err := envelope.Seal(env, news)
	if err != nil {
		return fmt.Errorf("tell case %s: %w", c.id, err)
	}
	subj := subject.Due(c.tenant, c.id)
	parts, err := subject.Parse(subj)
	if err != nil {
		return fmt.Errorf("tell case %s: %w", c.id, err)
	}
	if err := w.handle(ctx, &bus.Message{
		Envelope: env, Payload: news, Parts: parts, Stored: bus.Stored{Subject: subj, Time: now, Data: data}, Stream: roles.StreamControl, Delivered: 1,
	}); err != nil {
		return fmt.Errorf("tell case %s: %w", c.id, err)
	}
	return nil
}
