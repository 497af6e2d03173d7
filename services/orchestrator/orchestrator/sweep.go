package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/casework"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// unsynced is how long the broker may keep an acknowledged message of
	// a recomputable stream off the disk; three times of it are sent again.
	unsynced = 2 * time.Minute
	// walkIdle ends a walk that gets nothing more.
	walkIdle = 2 * time.Second
	// walkLimit bounds one walk.
	walkLimit = 10 * time.Minute
	// grace is how long after its deadline a case may still be with its timer.
	grace = 15 * time.Second
	// resendWorkers bound how many cases are sent again side by side.
	resendWorkers = 16
)

// openCase is what the sweeper keeps of a case: enough to know when to look.
type openCase struct {
	tenant, id string
	version    uint64
	next       time.Time
	updated    time.Time
	open       bool
}

// sweeper finds cases whose deadline passed without a timer, and after a start
// or a broker restart sends everything again that may have been lost. It walks
// the commits on a durable consumer which all replicas share; each keeps the
// cases it saw, so every open case is with some replica. A case it holds may
// have moved on elsewhere: it looks at the newest record before it acts.
type sweeper struct {
	*orchestrator
	mu    sync.Mutex
	cases map[string]openCase
	last  time.Time // broker's time of the newest commit seen
}

func (o *orchestrator) sweep(ctx context.Context) error {
	s := &sweeper{orchestrator: o, cases: map[string]openCase{}}
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // a start is a change: what was sent before may be lost
	o.conn.OnServerChange(func() {
		o.views.forget()
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	tick := time.NewTicker(o.cfg.SweepEvery)
	defer tick.Stop()
	again := time.NewTimer(0)
	defer again.Stop()
	<-again.C
	rewound := false
	for {
		// A release goes first: with a short sweep_every a look is always due.
		select {
		case from := <-o.rewalk:
			s.afterRelease(ctx, from)
			continue
		default:
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			rewound = false
			rewound, err = s.goOn(ctx, rewound)
		case <-again.C:
			rewound, err = s.goOn(ctx, rewound)
		case from := <-o.rewalk:
			s.afterRelease(ctx, from)
			continue
		case <-tick.C:
			if err := s.overdue(ctx, o.now()); err != nil && ctx.Err() == nil {
				o.log.WarnContext(ctx, "looking for overdue cases failed; it is done again", slog.String("error", err.Error()))
			}
			continue
		}
		if err != nil && ctx.Err() == nil {
			o.log.WarnContext(ctx, "sending again what may be lost is not done yet; it goes on", slog.String("error", err.Error()))
			again.Reset(walkIdle)
		}
	}
}

// goOn begins the walk anew, forgetting what the sweeper holds, unless that is
// done; then it walks on.
func (s *sweeper) goOn(ctx context.Context, rewound bool) (bool, error) {
	if rewound {
		return true, s.resendAll(ctx, false)
	}
	if err := s.conn.ResetConsumer(ctx, roles.ConsumerSweep, 1); err != nil {
		return false, fmt.Errorf("rewind the sweep: %w", err)
	}
	s.mu.Lock()
	clear(s.cases)
	s.mu.Unlock()
	return true, s.resendAll(ctx, true)
}

func (s *sweeper) afterRelease(ctx context.Context, from uint64) {
	if err := s.walkFrom(ctx, from); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "looking for cases that others held failed; their own deadlines wake them", slog.String("error", err.Error()))
	}
}

// walkFrom takes in again what was committed from a sequence on: a replica that
// is gone may have been the only one that knew some of it. The consumer is set
// back and never on: a start's walk may not have come that far, nor may what it
// was handed be settled.
func (s *sweeper) walkFrom(ctx context.Context, seq uint64) error {
	at, err := s.conn.Backlog(ctx, roles.ConsumerSweep)
	if err != nil {
		return fmt.Errorf("rewind the sweep: %w", err)
	}
	if err := s.conn.ResetConsumer(ctx, roles.ConsumerSweep, min(seq, at.Settled+1)); err != nil {
		return fmt.Errorf("rewind the sweep: %w", err)
	}
	_, _, err = s.walk(ctx)
	return err
}

// resendAll walks on through the commits and sends again for each case it holds
// that is open, or changed so lately that an unsynced message may be missing.
// It is done when it has seen the newest commit, or when other replicas have
// taken all the rest.
func (s *sweeper) resendAll(ctx context.Context, first bool) error {
	seen, caughtUp, err := s.walk(ctx)
	if err != nil {
		return err
	}
	err = s.look(ctx, "restart", func(c openCase) bool { return c.open || s.last.Sub(c.updated) <= 3*unsynced })
	switch {
	case err != nil:
		return err
	case caughtUp, seen == 0 && !first:
		return nil
	case seen == 0:
		_, err := s.conn.NextAfter(ctx, roles.StreamCases, subject.Case("*", "*"), 0)
		if errors.Is(err, bus.ErrNotFound) {
			return nil // there are no cases
		}
	}
	return errors.New("the walk has not reached the newest commit")
}

// overdue takes in the commits since the last walk and wakes every case whose
// deadline has passed for longer than its timer may take.
func (s *sweeper) overdue(ctx context.Context, now time.Time) error {
	if _, _, err := s.walk(ctx); err != nil {
		return err
	}
	return s.look(ctx, "overdue", func(c openCase) bool { return c.open && !c.next.IsZero() && now.Sub(c.next) > grace })
}

// walk takes in commits until it has caught up once: under load there is always
// one more.
func (s *sweeper) walk(ctx context.Context) (seen int64, all bool, err error) {
	walk, stop := context.WithTimeout(ctx, walkLimit)
	defer stop()
	idle := time.AfterFunc(walkIdle, stop)
	defer idle.Stop()
	var caughtUp atomic.Bool
	var count atomic.Int64
	err = s.conn.ConsumeRaw(walk, roles.ConsumerSweep, func(_ context.Context, m *bus.Raw) error {
		var c amendsv1.CaseCommit
		if err := proto.Unmarshal(m.Data, &c); err != nil {
			return bus.Reject("commit_undecodable", err)
		}
		s.note(c.GetRecord(), m.Time)
		count.Add(1)
		switch {
		case m.Pending == 0 && caughtUp.CompareAndSwap(false, true):
			idle.Reset(walkIdle / 8) // other workers may be busy with the ones before
		case !caughtUp.Load():
			idle.Reset(walkIdle)
		}
		return nil
	}, bus.ConsumeOptions{Workers: 4})
	return count.Load(), caughtUp.Load(), err
}

func (s *sweeper) note(rec *amendsv1.CaseRecord, at time.Time) {
	s.held.note(rec)
	next, waits := casework.Next(rec)
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.last) {
		s.last = at
	}
	key := rec.GetTenant() + "." + rec.GetCaseId()
	if have, ok := s.cases[key]; ok && have.version >= rec.GetVersion() {
		return
	}
	s.cases[key] = openCase{
		tenant: rec.GetTenant(), id: rec.GetCaseId(), version: rec.GetVersion(), next: next, updated: at,
		open: waits || !casework.Closed(rec),
	}
}

// look loads the newest record of the cases that want it and sends what it
// wants; cases that need no more watching are let go.
func (s *sweeper) look(ctx context.Context, cause string, wanted func(openCase) bool) error {
	s.mu.Lock()
	var todo []openCase
	for key, c := range s.cases {
		if wanted(c) {
			todo = append(todo, c)
		}
		if !c.open && !wanted(c) {
			delete(s.cases, key)
		}
	}
	s.mu.Unlock()
	var g errgroup.Group // without a shared end: one case that fails holds up no other
	g.SetLimit(resendWorkers)
	for _, c := range todo {
		g.Go(func() error { return s.again(ctx, c, cause) })
	}
	return g.Wait()
}

func (s *sweeper) again(ctx context.Context, c openCase, cause string) error {
	unlock := s.locks.lock(c.tenant, c.id)
	defer unlock()
	snap, err := s.store.Load(ctx, c.tenant, c.id)
	if err != nil {
		return fmt.Errorf("look at case %s: %w", c.id, err)
	}
	s.cache.put(snap)
	s.note(snap.Record, snap.Record.GetUpdatedAt().AsTime())
	s.metrics.resent.Add(ctx, 1, metric.WithAttributes(attribute.String("cause", cause)))
	return s.orchestrator.resend(ctx, snap.Record)
}
