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
	// projectorLook is how often the marker is read, and the progress of
	// a rebuild more often.
	projectorLook, rebuildLook = time.Second, 100 * time.Millisecond
	// projectorPause is how long to leave a failing Redis or broker alone.
	projectorPause = time.Second
	// projectorWorkers is how many views may wait to be put, and gatherFor how
	// long they do: a case that moves on meanwhile is put once, and all of them
	// in one go.
	projectorWorkers, gatherFor = 64, 50 * time.Millisecond
	// putTimeout bounds one put.
	putTimeout = 3 * time.Second
)

// projector puts the stored views into the read model. All gateways share one
// durable consumer. Nothing is lost when Redis is away: the projector stops
// consuming, and what it has not put comes again. When Redis was emptied, one
// of the gateways rewinds the consumer to the beginning; when it only was
// started anew it may have lost its last seconds, so the views come again too,
// while the model goes on serving.
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
	for failing := false; ctx.Err() == nil; {
		err := p.prepare(ctx)
		if err == nil {
			failing = false
			err = p.pass(ctx)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if !failing {
			p.log.Warn("the read model is not kept up; it goes on", slog.Any("error", err))
		}
		failing = true
		wait(ctx, projectorPause)
	}
}

// prepare sees to it that the views come from where the model needs them.
func (p *projector) prepare(ctx context.Context) error {
	marker, err := p.model.Marker(ctx)
	switch {
	case err != nil:
		return err
	case marker.Empty():
		return p.rewind(ctx)
	case !marker.Ready():
		return nil
	}
	server, err := p.model.Server(ctx)
	if err != nil || server == marker.Server() {
		return err
	}
	if err := p.bus.ResetConsumer(ctx, roles.ConsumerViews, 1); err != nil {
		return err
	}
	_, err = p.model.Renew(ctx, marker, server)
	return err
}

func (p *projector) rewind(ctx context.Context) error {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	token := hex.EncodeToString(b[:])
	mine, err := p.model.Claim(ctx, token)
	if err != nil || !mine {
		return err
	}
	if err := p.bus.ResetConsumer(ctx, roles.ConsumerViews, 1); err != nil {
		return errors.Join(err, p.model.Release(ctx, token))
	}
	ok, err := p.model.Rewound(ctx, token)
	if err == nil && ok {
		p.log.Info("the read model is built anew")
	}
	return err
}

// pass consumes until ctx ends, Redis fails, or the model must be prepared
// again.
func (p *projector) pass(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var watching sync.WaitGroup
	watching.Go(func() { stop(p.watch(ctx)) })
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
	watching.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, errPrepare) && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

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

// errPrepare: the model is not what prepare left.
var errPrepare = errors.New("the read model must be prepared again")

// watch follows the marker, and ends a rebuild when all views are in. It returns
// when consuming must stop.
func (p *projector) watch(ctx context.Context) error {
	var target uint64 // the last view of a moment at which none waited
	var of readmodel.Marker
	for every := rebuildLook; ; {
		wait(ctx, every)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		marker, err := p.model.Marker(ctx)
		if err != nil {
			return err
		}
		backlog, err := p.bus.Backlog(ctx, roles.ConsumerViews)
		if err != nil {
			continue // the consumer notices a broker that is away
		}
		p.waiting.Store(backlog.Total())
		every = projectorLook
		switch {
		case marker.Empty():
			return errPrepare
		case marker.Ready():
			server, err := p.model.Server(ctx)
			if err != nil {
				return err
			}
			if server != marker.Server() {
				return errPrepare
			}
		case marker.Building():
			every = rebuildLook
			if of != marker {
				of, target = marker, 0
			}
			if target == 0 && backlog.Waiting == 0 {
				target = max(backlog.Delivered, 1)
			}
			if target == 0 || backlog.Total() != 0 && backlog.Settled < target {
				continue
			}
			if err := p.finish(ctx, marker); err != nil {
				return err
			}
		}
	}
}

func (p *projector) finish(ctx context.Context, marker readmodel.Marker) error {
	server, err := p.model.Server(ctx)
	if err != nil {
		return err
	}
	ok, err := p.model.Finish(ctx, marker, server)
	if err == nil && ok {
		p.log.Info("the read model is complete")
	}
	return err
}

// entryOf gives what the read model keeps of a view.
func entryOf(subj string, data []byte) (readmodel.Entry, error) {
	v := new(amendsv1.CaseView)
	if err := proto.Unmarshal(data, v); err != nil {
		return readmodel.Entry{}, fmt.Errorf("decode a view: %w", err)
	}
	e := readmodel.Entry{
		Tenant: v.GetTenant(), CaseID: v.GetCaseId(), RequestID: v.GetRequestId(), CustomerID: v.GetCustomerId(), OrderID: v.GetOrderId(),
		State: v.GetState(), Version: v.GetVersion(), Closed: v.GetClosed(),
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
