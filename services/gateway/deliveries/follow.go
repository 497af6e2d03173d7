package deliveries

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// maxWalk bounds the messages of one look at the log.
const maxWalk = 10_000

// follower reads the log from its beginning and then what is new in it: what
// this replica has to do after a start, and what another one has done, or left
// when it died.
type follower struct {
	*Outbox
	cursor  uint64
	changed chan struct{}
	// rewound is when the views were last walked again, zero when they must be.
	rewound time.Time
	stale   bool
	failing bool
}

func newFollower(o *Outbox) *follower {
	f := &follower{Outbox: o, changed: make(chan struct{}, 1), stale: true} // a start is a change: what was stored before may be lost
	o.Bus.OnServerChange(func() {
		select {
		case f.changed <- struct{}{}:
		default:
		}
	})
	return f
}

func (f *follower) run(ctx context.Context) {
	tick := time.NewTicker(f.times.follow)
	defer tick.Stop()
	for {
		err := f.walk(ctx)
		if err == nil {
			err = f.rewind(ctx)
		}
		if failing := err != nil; failing != f.failing && ctx.Err() == nil {
			f.failing = failing
			if failing {
				f.Log.LogAttrs(ctx, slog.LevelWarn, "delivery log not readable; looking again", slog.Any("error", err))
			} else {
				f.Log.LogAttrs(ctx, slog.LevelInfo, "delivery log readable again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			f.cursor, f.stale = 0, true
			for _, e := range f.endpoints {
				e.forget()
			}
		case <-tick.C:
		}
	}
}

// walk takes in what is new in the log.
func (f *follower) walk(ctx context.Context) error {
	for _, e := range f.endpoints {
		if e.queue.room() {
			f.cursor = 0
		}
	}
	for range maxWalk {
		m, err := f.Bus.NextAfter(ctx, roles.StreamDeliveries, ">", f.cursor)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		f.cursor = m.Seq
		if err := f.note(m); err != nil {
			f.Log.LogAttrs(ctx, slog.LevelError, "delivery log entry not readable", slog.String("subject", m.Subject), slog.Any("error", err))
		}
	}
	return nil
}

func (f *follower) note(m bus.Stored) error {
	at, err := subject.Parse(m.Subject)
	if err != nil {
		return err
	}
	if at.Kind == subject.KindEndpoint {
		s := new(amendsv1.EndpointState)
		if err := proto.Unmarshal(m.Data, s); err != nil {
			return err
		}
		if e := f.endpoints[place{at.Tenant, at.CaseID}]; e != nil {
			e.see(s, m.Seq)
		}
		return nil
	}
	log := new(amendsv1.DeliveryLog)
	if err := proto.Unmarshal(m.Data, log); err != nil {
		return err
	}
	if e := f.endpoints[place{log.GetTenant(), log.GetChannel()}]; e != nil {
		e.plan(log)
	}
	return nil
}

// rewind has the views walked again when a part of the log may be lost. Several
// replicas may do so at once; it costs reads only.
func (f *follower) rewind(ctx context.Context) error {
	now := f.Now()
	if !f.stale || now.Sub(f.rewound) < f.times.rewind {
		return nil
	}
	if err := f.Bus.ResetConsumer(ctx, roles.ConsumerReplies, 1); err != nil {
		return fmt.Errorf("walk the views again: %w", err)
	}
	f.stale, f.rewound = false, now
	return nil
}
