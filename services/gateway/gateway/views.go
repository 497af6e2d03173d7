package gateway

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// viewWait is how long a view that is not there is waited for: right after
	// a 202 the orchestrator may not have written it yet.
	viewWait = 2 * time.Second
	// viewPoll is how often the stored view is read meanwhile, because what
	// arrives live is only a hint.
	viewPoll = 250 * time.Millisecond
	// watchBuffer is how many views a reader may lag behind.
	watchBuffer = 16
)

// errMissing: no view that the reader may see turned up in time.
var errMissing = errors.New("no such view")

func isMissing(err error) bool { return errors.Is(err, errMissing) }

// views hands stored and live views to this process's readers. One
// subscription serves all of them.
type views struct {
	bus broker
	log *slog.Logger

	mu      sync.Mutex
	readers map[string][]*reader // by view subject
}

// reader is somebody who waits for views of one case.
type reader struct {
	subj string
	// live is closed when the reader fell too far behind.
	live chan *snapshot
	// reread is told when live views may have been lost.
	reread chan struct{}
}

func newViews(b broker, log *slog.Logger) *views {
	return &views{bus: b, log: log, readers: map[string][]*reader{}}
}

// watch registers a reader; call stop when done.
func (v *views) watch(tenant, caseID string) (r *reader, stop func()) {
	r = &reader{subj: subject.View(tenant, caseID), live: make(chan *snapshot, watchBuffer), reread: make(chan struct{}, 1)}
	v.mu.Lock()
	v.readers[r.subj] = append(v.readers[r.subj], r)
	v.mu.Unlock()
	return r, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.remove(r)
	}
}

func (v *views) remove(r *reader) {
	rest := slices.DeleteFunc(v.readers[r.subj], func(other *reader) bool { return other == r })
	if len(rest) == 0 {
		delete(v.readers, r.subj)
		return
	}
	v.readers[r.subj] = rest
}

// receive passes a republished view on. Views nobody waits for are not decoded.
func (v *views) receive(subj string, data []byte) {
	subj = strings.TrimPrefix(subj, subject.LivePrefix)
	v.mu.Lock()
	watched := len(v.readers[subj]) > 0
	v.mu.Unlock()
	if !watched {
		return
	}
	s, err := decodeView(data)
	if err != nil {
		v.log.Warn("live view not readable", slog.String("subject", subj), slog.Any("error", err))
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range slices.Clone(v.readers[subj]) {
		select {
		case r.live <- s:
		default:
			close(r.live)
			v.remove(r)
		}
	}
}

// reread makes every reader look at what is stored; live views may be missing.
func (v *views) reread() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, rs := range v.readers {
		for _, r := range rs {
			select {
			case r.reread <- struct{}{}:
			default: // told already
			}
		}
	}
}

// stored reads the stored view; errMissing when there is none.
func (v *views) stored(ctx context.Context, subj string) (*snapshot, error) {
	m, err := v.bus.LastDirect(ctx, roles.StreamViews, subj)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	return decodeView(m.Data)
}

// await gives the view of a case that want accepts, waiting viewWait for one
// to appear.
func (v *views) await(ctx context.Context, tenant, caseID string, want func(*amendsv1.CaseView) bool) (*snapshot, error) {
	r, stop := v.watch(tenant, caseID)
	defer stop()
	return v.awaitOn(ctx, r, want)
}

func (v *views) awaitOn(ctx context.Context, r *reader, want func(*amendsv1.CaseView) bool) (*snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	poll := time.NewTicker(viewPoll)
	defer poll.Stop()
	live, answered := r.live, false
	for {
		s, err := v.stored(ctx, r.subj)
		if err == nil && !want(s.view) {
			err = errMissing
		}
		if err == nil {
			return s, nil
		}
		// What no read has answered is not known to be missing.
		answered = answered || isMissing(err)
		if !isMissing(err) && (ctx.Err() == nil || !answered) {
			return nil, err
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil, errMissing
			case s, ok := <-live:
				if !ok {
					live = nil // fell behind; what is stored decides
				} else if want(s.view) {
					return s, nil
				}
			case <-poll.C:
				waiting = false
			case <-r.reread:
				waiting = false
			}
		}
	}
}
