package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// projectorPause is how often the model is looked after, and how long
	// a failing Redis or broker is left alone.
	projectorPause = time.Second
	// projectorWorkers is how many views may wait to be put, and gatherFor how
	// long they do: a case that moves on meanwhile is put once, and all of them
	// in one go.
	projectorWorkers, gatherFor = 64, 50 * time.Millisecond
	// catchUpLooks and catchUpPause bound how long the model is waited for.
	catchUpLooks, catchUpPause = 40, 50 * time.Millisecond
	// putTimeout bounds one put.
	putTimeout = 3 * time.Second
)

// projector puts the views into the read model. Newer ones come by a durable
// consumer that all gateways share; while Redis is away the projector stops
// consuming, and what it has not put comes again. When Redis was emptied, or
// started anew and so may have lost its last seconds, one of the gateways reads
// every stored view and puts it. That does not go by the consumer: what was
// acknowledged before Redis was emptied would not come again.
type projector struct {
	bus   broker
	model *readmodel.Model
	log   *slog.Logger
	// waiting is how many views are not in the model, as last seen.
	waiting atomic.Uint64

	mu     sync.Mutex
	joined *gathering // that views may still join
}

// run projects until ctx ends.
func (p *projector) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { p.again(ctx, "take in newer views", p.pass) })
	both.Go(func() { p.again(ctx, "look after the read model", p.keep) })
	both.Wait()
}

// again does something until ctx ends, and says once that it fails.
func (p *projector) again(ctx context.Context, what string, do func(context.Context) error) {
	for failing := false; ctx.Err() == nil; {
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			p.log.Warn("the projector fails; it goes on", slog.String("at", what), slog.Any("error", err))
		}
		failing = err != nil
		wait(ctx, projectorPause)
	}
}

// pass takes in newer views until ctx ends or Redis fails. While Redis is away it
// takes none: each would use up one of its deliveries.
func (p *projector) pass(ctx context.Context) error {
	if _, err := p.model.Marker(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := p.bus.ConsumeRaw(ctx, roles.ConsumerViews, func(ctx context.Context, m *bus.Raw) error {
		e, err := entryOf(m.Subject, m.Data)
		if err != nil {
			return bus.Reject("view_unusable", err)
		}
		if err := p.put(ctx, e); err != nil {
			stop(err)
			return bus.Retry(err)
		}
		return nil
	}, bus.ConsumeOptions{Workers: projectorWorkers, Timeout: 2 * putTimeout})
	stop(err)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// keep looks after the model once: it fills an empty one.
func (p *projector) keep(ctx context.Context) error {
	if backlog, err := p.bus.Backlog(ctx, roles.ConsumerViews); err == nil {
		p.waiting.Store(backlog.Total())
	}
	marker, err := p.model.Marker(ctx)
	if err != nil {
		return err
	}
	server, err := p.model.Server(ctx)
	if err != nil || marker.Claimed() || marker.Ready() && marker.Server() == server {
		return err
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	claim := readmodel.Claim(hex.EncodeToString(b[:]))
	mine, err := p.model.Claim(ctx, marker, claim)
	if err != nil || !mine {
		return err
	}
	p.log.Info("the read model is built anew")
	if err := p.fill(ctx, claim); err != nil {
		return errors.Join(err, p.model.Release(context.WithoutCancel(ctx), claim))
	}
	ok, err := p.model.Finish(ctx, claim, server)
	if err == nil && ok {
		p.log.Info("the read model is complete")
	}
	return err
}

// fill puts every view that is stored now. The claim is extended meanwhile; one
// that is gone ends it, for then Redis was emptied again.
func (p *projector) fill(ctx context.Context, claim readmodel.Claim) error {
	last, err := p.bus.Last(ctx, roles.StreamViews, subject.View("*", "*"))
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var part []readmodel.Entry
	for seq := uint64(0); seq < last.Seq; {
		m, err := p.bus.NextAfter(ctx, roles.StreamViews, subject.View("*", "*"), seq)
		if errors.Is(err, bus.ErrNotFound) {
			break
		}
		if err != nil {
			return err
		}
		seq = m.Seq
		if e, err := entryOf(m.Subject, m.Data); err == nil {
			part = append(part, e)
		} else {
			p.log.Warn("stored view not usable", slog.String("subject", m.Subject), slog.Any("error", err))
		}
		if len(part) == readmodel.MaxPut {
			if err := p.putPart(ctx, claim, part); err != nil {
				return err
			}
			part = part[:0]
		}
	}
	return p.putPart(ctx, claim, part)
}

func (p *projector) putPart(ctx context.Context, claim readmodel.Claim, part []readmodel.Entry) error {
	if mine, err := p.model.Extend(ctx, claim); err != nil || !mine {
		return errors.Join(err, errClaimGone)
	}
	if len(part) == 0 {
		return nil
	}
	return p.model.Put(ctx, part...)
}

// errClaimGone: Redis was emptied while the model was filled.
var errClaimGone = errors.New("the claim on the read model is gone")

// gathering are entries that are put together.
type gathering struct {
	newest map[string]readmodel.Entry // by the view's subject
	done   chan struct{}
	err    error // when done
}

// put puts an entry together with others that come about now.
func (p *projector) put(ctx context.Context, e readmodel.Entry) error {
	p.mu.Lock()
	g := p.joined
	if g == nil {
		g = &gathering{newest: map[string]readmodel.Entry{}, done: make(chan struct{})}
		p.joined = g
		time.AfterFunc(gatherFor, func() { p.putAll(g) })
	}
	key := subject.View(e.Tenant, e.CaseID)
	if have, ok := g.newest[key]; !ok || have.Version < e.Version {
		g.newest[key] = e
	}
	p.mu.Unlock()
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *projector) putAll(g *gathering) {
	p.mu.Lock()
	p.joined = nil
	entries := slices.Collect(maps.Values(g.newest))
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), putTimeout)
	defer cancel()
	for part := range slices.Chunk(entries, readmodel.MaxPut) {
		if g.err = p.model.Put(ctx, part...); g.err != nil {
			break
		}
	}
	close(g.done)
}

// caughtUp waits, shortly, until every view that is stored now is in the model.
// What is not listed may be there all the same until then.
func (p *projector) caughtUp(ctx context.Context) error {
	last, err := p.bus.Last(ctx, roles.StreamViews, subject.View("*", "*"))
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for range catchUpLooks {
		backlog, err := p.bus.Backlog(ctx, roles.ConsumerViews)
		if err != nil {
			return err
		}
		if backlog.Total() == 0 || backlog.Settled >= last.Seq {
			return nil
		}
		wait(ctx, catchUpPause)
	}
	return readmodel.ErrNotReady
}

// entryOf gives what the read model keeps of a view.
func entryOf(subj string, data []byte) (readmodel.Entry, error) {
	v := new(amendsv1.CaseView)
	if err := proto.Unmarshal(data, v); err != nil {
		return readmodel.Entry{}, fmt.Errorf("decode a view: %w", err)
	}
	e := readmodel.Entry{
		Tenant: v.GetTenant(), CaseID: v.GetCaseId(), RequestID: v.GetRequestId(), CustomerID: v.GetCustomerId(), OrderID: v.GetOrderId(),
		State: v.GetState(), Queue: v.GetQueue(), Version: v.GetVersion(), Closed: v.GetClosed(),
	}
	if v.GetOpenedAt() != nil {
		e.OpenedAt = v.GetOpenedAt().AsTime()
	}
	if v.GetUpdatedAt() != nil {
		e.UpdatedAt = v.GetUpdatedAt().AsTime()
	}
	if err := e.Check(); err != nil {
		return readmodel.Entry{}, err
	}
	if subj != subject.View(e.Tenant, e.CaseID) {
		return readmodel.Entry{}, errors.New("the view is of another case than its subject")
	}
	return e, nil
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
