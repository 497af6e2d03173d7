package bus

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// A handler's context has ended; it gets this part of its timeout more to
	// return before it is abandoned.
	graceShare = 4
	minTick    = 5 * time.Millisecond
)

var errAllHang = errors.New("too many handlers hang")

// flight is the set of deliveries in hand.
type flight struct {
	mu   sync.Mutex
	open map[*delivery]struct{}
	// hung counts abandoned handlers that have not returned.
	hung int
}

func (f *flight) add(d *delivery) {
	f.mu.Lock()
	f.open[d] = struct{}{}
	f.mu.Unlock()
}

func (f *flight) begin(d *delivery, now time.Time) {
	f.mu.Lock()
	d.begun = now
	f.mu.Unlock()
}

func (f *flight) remove(d *delivery) {
	f.mu.Lock()
	delete(f.open, d)
	f.mu.Unlock()
}

// sweep gives the deliveries that need a heartbeat, and those whose handlers
// hang. The latter it claims and gives a new worker, as long as there are fewer
// hanging handlers than workers: Go cannot stop the old ones.
func (p *pump) sweep(now time.Time, patience time.Duration) (beat, hang []*delivery) {
	f := &p.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	for d := range f.open {
		switch {
		case !d.begun.IsZero() && now.Sub(d.begun) > patience && d.claim():
			delete(f.open, d)
			f.hung++
			d.replaced = f.hung <= p.opts.Workers
			p.workers.Add(1) // for abandon; the old worker still counts
			hang = append(hang, d)
		case now.Sub(d.extended) > p.spec.AckWait/3:
			d.extended = now
			beat = append(beat, d)
		}
	}
	if f.hung >= p.opts.Workers {
		p.conn.health.set(p.handlers(), errAllHang)
	}
	return beat, hang
}

// handlers names the consumer's handlers in the connection's health.
func (p *pump) handlers() string { return p.spec.Name + " handlers" }

// returned notes that an abandoned handler came back and says whether its
// worker was replaced.
func (p *pump) returned(d *delivery) bool {
	f := &p.flight
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hung--
	if f.hung == p.opts.Workers-1 {
		p.conn.health.clear(p.handlers())
	}
	return d.replaced
}

// watch keeps what waits or is handled for long alive at the broker, and takes the message from a
// handler that does not return; one loop for all of a consumer's workers.
func (p *pump) watch(base context.Context) {
	patience := p.opts.Timeout + max(p.opts.Timeout/graceShare, minTick)
	tick := time.NewTicker(max(min(p.spec.AckWait/6, p.opts.Timeout/4), minTick))
	defer tick.Stop()
	for {
		select {
		case <-base.Done():
			return
		case now := <-tick.C:
			beat, hang := p.sweep(now, patience)
			for _, d := range beat {
				if p.say(d, wordProgress) == nil { // else the connection is down
					p.conn.metrics.heartbeats.Add(bg, 1)
				}
			}
			for _, d := range hang {
				p.conn.log.Error("handler abandoned", slog.String("consumer", p.spec.Name),
					slog.String("case", d.caseKey()), slog.Uint64("sequence", d.meta.Sequence.Stream))
				go p.abandon(base, d)
			}
		}
	}
}

// abandon settles the message of a hanging handler and, when it replaces its
// worker, goes on working.
func (p *pump) abandon(base context.Context, d *delivery) {
	defer p.workers.Done()
	p.settle(base, d, Retry(errHung))
	if d.replaced {
		p.work(base)
	}
}

// drain waits, bounded, for the workers to end: first for the handlers in
// flight to finish, then for them to see that their context has ended.
func (p *pump) drain(abort context.CancelFunc) {
	ended := make(chan struct{})
	go func() {
		p.workers.Wait()
		close(ended)
	}()
	patience := time.NewTimer(min(drainPatience, p.opts.Timeout))
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	}
	abort()
	select {
	case <-ended:
	case <-time.After(time.Second):
		p.conn.log.Error("handlers still running at the end of a consumer", slog.String("consumer", p.spec.Name))
	}
}
