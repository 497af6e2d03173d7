package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// runLimit bounds one run.
	runLimit = 15 * time.Minute
	// RequestAge is how old a request may be when it is first seen: it may wait
	// behind a whole run.
	RequestAge = 2 * runLimit
	// answered is how old a request may be to be told that it is too old: as long
	// as reports are kept.
	answered = 30 * 24 * time.Hour
	// leastSkew is what clocks may differ by whatever the grace.
	leastSkew = 2 * time.Second
	// maxRequests bounds how many are taken at one look.
	maxRequests = 64
	// A report is tried to be written writeTries times, writePause apart; a
	// replica's that came in between costs one.
	writeTries = 10
	writePause = 200 * time.Millisecond
)

// Run is one comparison of one tenant.
type Run struct {
	ID, Tenant string
	// DryRun: look and report, and change nothing.
	DryRun bool
	// At is when it was begun, by the broker's clock, which dates what the ledger
	// and the cases hold.
	At time.Time
}

// Bus is what is needed of a service's connection.
type Bus interface {
	NextAfter(ctx context.Context, stream, filter string, seq uint64) (bus.Stored, error)
	LastDirect(ctx context.Context, stream, subj string) (bus.Stored, error)
	Publish(ctx context.Context, subj string, data []byte, opts ...bus.PublishOption) (uint64, error)
}

// Options say who compares what.
type Options struct {
	Config
	Service roles.Service
	Bus     Bus
	Now     func() time.Time
	// Time gives the broker's clock.
	Time func(ctx context.Context) (time.Time, error)
	Log  *slog.Logger
	// Compare makes a run and fills its report.
	Compare func(ctx context.Context, run Run, r *Report)
	// Done is told of each finished run; it may be nil.
	Done func(ctx context.Context, r *amendsv1.ReconciliationReport)
}

// Server carries out the runs of one process, one at a time.
type Server struct {
	Options
	// seen is the sequence of the last request looked at; rewind says that the
	// broker may count anew.
	seen   uint64
	rewind atomic.Bool
	done   map[string]bool
	slots  map[string]time.Time
}

// New gives a server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{Options: o, done: map[string]bool{}, slots: map[string]time.Time{}}
}

// Rewind makes it look at all requests again: the broker may have lost some.
func (s *Server) Rewind() { s.rewind.Store(true) }

// Serve carries out what is asked for and what is due until ctx ends. A run
// that is asked for goes before those that are due.
func (s *Server) Serve(ctx context.Context) error {
	tick := time.NewTicker(s.Poll)
	defer tick.Stop()
	if s.Every > 0 && len(s.Tenants) == 0 {
		s.Log.WarnContext(ctx, "no tenant is reconciled: reconcile.tenants is empty", slog.Duration("every", s.Every))
	}
	for {
		if err := s.asked(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "requests to reconcile not readable", slog.String("error", err.Error()))
		}
		s.due(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// asked carries out the requests that came since.
func (s *Server) asked(ctx context.Context) error {
	if s.rewind.Swap(false) {
		s.seen = 0
	}
	for range maxRequests {
		m, err := s.Bus.NextAfter(ctx, roles.StreamControl, subject.Reconcile("*"), s.seen)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		now, err := s.Time(ctx)
		if err != nil {
			return err
		}
		s.seen = m.Seq
		req := new(amendsv1.ReconcileRequest)
		err = proto.Unmarshal(m.Data, req)
		if err == nil {
			err = envelope.Validate(req)
		}
		run := Run{ID: req.GetRunId(), Tenant: req.GetTenant(), DryRun: req.GetDryRun()}
		switch age := now.Sub(m.Time); {
		case err != nil || m.Subject != subject.Reconcile(req.GetTenant()):
			s.Log.WarnContext(ctx, "request to reconcile not understood", slog.Uint64("sequence", m.Seq))
		case s.done[run.ID], age > answered:
		case age > RequestAge:
			s.tell(ctx, run, ReasonTooOld)
		default:
			s.run(ctx, run)
		}
	}
	return nil
}

// due carries out the scheduled run of one tenant, if there is one. Its id
// follows from the time it is of, so replicas share one report.
func (s *Server) due(ctx context.Context) {
	if s.Every == 0 {
		return
	}
	slot := s.Now().Truncate(s.Every)
	for _, tenant := range s.Tenants {
		if s.slots[tenant].Equal(slot) {
			continue
		}
		s.slots[tenant] = slot
		s.run(ctx, Run{ID: "scheduled-" + strconv.FormatInt(slot.Unix(), 10), Tenant: tenant})
		return // requests first
	}
}

func (s *Server) run(ctx context.Context, run Run) {
	if !slices.Contains(s.Tenants, run.Tenant) {
		s.tell(ctx, run, ReasonNotConfigured)
		return
	}
	before := s.Now()
	at, err := s.Time(ctx)
	after := s.Now()
	if run.At = at; err != nil {
		run.At = after
	}
	r := NewReport(run, s.Service, run.At)
	r.keep = s.write
	if skew := apart(at, before, after); err != nil || skew > max(s.Grace, leastSkew) {
		r.Incomplete(ReasonClock) // ages that this process's own records have are wrong by as much
		s.Log.WarnContext(ctx, "own clock is not the broker's", slog.String("run", run.ID), slog.Duration("apart", skew), slog.Any("error", err))
	}
	bounded, cancel := context.WithTimeout(ctx, runLimit)
	s.Compare(bounded, run, r)
	if bounded.Err() != nil {
		r.Incomplete(ReasonTimeout)
	}
	cancel()
	if ctx.Err() != nil {
		return // it is done again
	}
	out := r.finish(run.At.Add(s.Now().Sub(after)))
	s.end(ctx, out)
	level := slog.LevelInfo
	if len(out.GetFindings()) > 0 || out.GetIncomplete() != "" {
		level = slog.LevelWarn
	}
	s.Log.Log(ctx, level, "reconciled", slog.String("tenant", run.Tenant), slog.String("run", run.ID), slog.Bool("dry_run", run.DryRun),
		slog.Uint64("orders", out.GetOrders()), slog.Uint64("cases", out.GetCases()), slog.Int("findings", len(out.GetFindings())),
		slog.Uint64("omitted", out.GetOmitted()), slog.String("incomplete", out.GetIncomplete()))
}

// tell answers a run that is not carried out with the reason, unless another
// replica did.
func (s *Server) tell(ctx context.Context, run Run, why string) {
	at := s.Now()
	r := NewReport(run, s.Service, at)
	r.Incomplete(why)
	s.end(ctx, r.finish(at))
	s.Log.InfoContext(ctx, "reconciliation not carried out", slog.String("tenant", run.Tenant), slog.String("run", run.ID), slog.String("reason", why))
}

// end writes the report of a run that is over.
func (s *Server) end(ctx context.Context, out *amendsv1.ReconciliationReport) {
	if len(s.done) > maxSent {
		clear(s.done)
	}
	if err := s.write(ctx, out); err == nil {
		s.done[out.GetRunId()] = true
	} else {
		s.Log.ErrorContext(ctx, "report of a reconciliation not written", slog.String("tenant", out.GetTenant()), slog.String("run", out.GetRunId()), slog.String("error", err.Error()))
	}
	if s.Done != nil {
		s.Done(ctx, out)
	}
}

// write makes a report readable, by compare-and-set over what is there of the
// same run: what another replica, or this one before a crash, found stays in it.
func (s *Server) write(ctx context.Context, r *amendsv1.ReconciliationReport) error {
	if err := envelope.Validate(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	var err error
	for try := range writeTries {
		if try > 0 && !pause(ctx, writePause) {
			break
		}
		if err = s.writeOver(ctx, r); err == nil {
			return nil
		}
	}
	return fmt.Errorf("write the report: %w", err)
}

func (s *Server) writeOver(ctx context.Context, r *amendsv1.ReconciliationReport) error {
	at := subject.Report(string(s.Service), r.GetTenant(), r.GetRunId())
	var have *amendsv1.ReconciliationReport
	m, err := s.Bus.LastDirect(ctx, roles.StreamReports, at)
	switch {
	case errors.Is(err, bus.ErrNotFound):
	case err != nil:
		return err
	default:
		have = new(amendsv1.ReconciliationReport)
		if proto.Unmarshal(m.Data, have) != nil || have.GetRunId() != r.GetRunId() {
			have = nil // nobody can read it
		}
	}
	out := merged(have, r)
	if have != nil && proto.Equal(have, out) {
		return nil
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(out)
	if err != nil {
		return err
	}
	_, err = s.Bus.Publish(ctx, at, data, bus.ExpectLast(m.Seq))
	return err
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
