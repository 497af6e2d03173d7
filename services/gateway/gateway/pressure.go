package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

const (
	// pressureEvery is how often the desk's backlog is read.
	pressureEvery = time.Second
	// pressureKept is how long a reading counts when no newer one can be had.
	pressureKept = 15 * time.Second
	// pressureRetry is when a refused post may come again.
	pressureRetry = 5 * time.Second
)

var overCapacity = deskapi.NewProblem(http.StatusServiceUnavailable, deskapi.CodeOverloaded, "the desk is busy with the cases it has; nothing was stored, send the same request again").After(pressureRetry)

// pressure knows how much the desk has before it, and closes the door to new
// cases while that is too much. What concerns started cases always passes, so
// that they end. The figure is what waits or is being handled at the consumers
// of posts, results and tasks; a case that waits for a person or a deadline is
// not in it.
//
// When it cannot be read the last one counts for pressureKept, and after that
// the door is open up to the rate limits: then either the broker is away, and
// posts are refused anyway, or only the reading fails, which must not stop the
// intake.
type pressure struct {
	bus       broker
	consumers []string
	limit     uint64
	now       func() time.Time
	log       *slog.Logger

	mu   sync.Mutex
	load uint64
	read time.Time
	// taken counts the posts since the last reading began; some of them may be
	// in it too.
	taken uint64
}

// run reads the backlog until ctx ends.
func (p *pressure) run(ctx context.Context) {
	tick := time.NewTicker(pressureEvery)
	defer tick.Stop()
	for failing := false; ; {
		err := p.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			p.log.Warn("the desk's backlog is not readable", slog.Any("error", err))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *pressure) look(ctx context.Context) error {
	p.mu.Lock()
	before := p.taken
	p.mu.Unlock()
	var load uint64
	for _, name := range p.consumers {
		b, err := p.bus.Backlog(ctx, name)
		if err != nil {
			return err
		}
		load += b.Total()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load, p.read = load, p.now()
	p.taken -= before
	return nil
}

// high says that no new case may begin.
func (p *pressure) high() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now().Sub(p.read) <= pressureKept && p.load+p.taken >= p.limit
}

// took counts a new case.
func (p *pressure) took() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
}

// current gives the last reading, for the metric.
func (p *pressure) current() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.load
}

// repeatOnly answers a post for which there is no room: a repeat of one whose
// case is begun gets its answer at the cost of one read.
func (g *gateway) repeatOnly(ctx context.Context, c caller, caseID string, p post) *deskapi.Problem {
	s, err := g.views.stored(ctx, subject.View(c.tenant, caseID))
	if err != nil {
		g.metrics.post(ctx, "overloaded")
		return overCapacity
	}
	return g.compare(ctx, c, s.view, p)
}

// compare says whether a post is the one its case began with.
func (g *gateway) compare(ctx context.Context, c caller, v *amendsv1.CaseView, p post) *deskapi.Problem {
	if v.GetCustomerId() != c.customer || v.GetBodySha256() != p.sha256 {
		g.metrics.post(ctx, "key_reused")
		return keyReused
	}
	g.metrics.post(ctx, "repeated")
	return nil
}
