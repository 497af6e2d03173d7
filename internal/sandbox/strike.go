package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxLater bounds the refunds that wait to fail.
const maxLater = 4096

// errAborted: the connection is closed without an answer.
var errAborted = errors.New("the answer is lost")

// faults holds the rules and counts what they do.
type faults struct {
	log *slog.Logger
	// some is how many rules there are: without any, nothing is looked up.
	some  atomic.Int32
	later atomic.Int32

	mu    sync.Mutex
	rules Faults

	ended chan struct{}
	work  sync.WaitGroup
}

func newFaults(c Config) (*faults, error) {
	f := &faults{log: c.Log, ended: make(chan struct{})}
	if err := f.set(c.Faults); err != nil {
		return nil, err
	}
	return f, nil
}

// SetFaults puts other faults in the place of those there are, and counts anew.
func (s *Server) SetFaults(f Faults) error { return s.faults.set(f) }

// Faults gives the faults with how often each struck.
func (s *Server) Faults() Faults { return s.faults.list() }

func (f *faults) set(rules Faults) error {
	if err := rules.Validate(); err != nil {
		return err
	}
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].On, rules[i].Struck = slices.Clone(rules[i].On), 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
	f.some.Store(int32(len(rules)))
	return nil
}

func (f *faults) list() Faults {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(Faults{}, f.rules...)
}

// claim strikes with the rules that match, at most so many, and counts them.
func (f *faults) claim(most int, matches func(Fault) bool) (out []Fault) {
	if f.some.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.rules {
		x := &f.rules[i]
		if len(out) < most && (x.Times == 0 || x.Struck < x.Times) && matches(*x) {
			x.Struck++
			out = append(out, *x)
			f.log.Info("fault strikes", slog.String("fault", string(x.Kind)), slog.Int("struck", x.Struck))
		}
	}
	return out
}

// one strikes with the first rule of a kind that is about a subject.
func (f *faults) one(kind FaultKind, place string, about subject) (Fault, bool) {
	hit := f.claim(1, func(x Fault) bool { return x.Kind == kind && x.strikes(place) && x.matches(about) })
	if len(hit) == 0 {
		return Fault{}, false
	}
	return hit[0], true
}

// subject is what a request or a change is about, as far as it is known.
type subject struct {
	tenant, order        string
	payments, references []string
}

func (x Fault) matches(s subject) bool {
	return (x.Tenant == "" || x.Tenant == s.tenant) && (x.Order == "" || x.Order == s.order) &&
		(x.Payment == "" || slices.Contains(s.payments, x.Payment)) && (x.Reference == "" || slices.Contains(s.references, x.Reference))
}

// strikes reports whether a fault strikes at a route or another place.
func (x Fault) strikes(place string) bool {
	on := x.On
	if len(on) == 0 {
		info, _ := infoOf(x.Kind) // it was validated
		on = info.On
	}
	for _, o := range on {
		read := place != routeCreate && place != onRecords && place != onWebhooks
		if o == place || o == onAll || o == onReads && read || o == onWrites && place == routeCreate {
			return true
		}
	}
	return false
}

// wait holds for a while; false when the sandbox ends first.
func (f *faults) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-f.ended:
		return false
	}
}

// before comes when a request may be made and nothing is done yet. A request
// that is held is done even when its client has gone, as with any provider.
func (f *faults) before(c *call) error {
	if err := f.hold(c, whenBefore); err != nil {
		return err
	}
	if _, ok := f.one(Outage, c.route, c.about); ok {
		return injected(Outage, http.StatusServiceUnavailable)
	}
	if x, ok := f.one(ErrorBefore, c.route, c.about); ok {
		return injected(ErrorBefore, x.Code)
	}
	return nil
}

// after comes when what was asked for is done and durable, and not answered.
func (f *faults) after(c *call, a *answer, turn func(refundID, status string) error) error {
	if a.made != nil {
		if x, ok := f.one(FailsLater, c.route, c.about); ok {
			f.failLater(a.made.RefundID, x, turn)
		}
	}
	a.body = f.distort(c, a.body)
	if err := f.hold(c, whenAfter); err != nil {
		return err
	}
	if x, ok := f.one(ErrorAfter, c.route, c.about); ok {
		return injected(ErrorAfter, x.Code)
	}
	if _, ok := f.one(AnswerLost, c.route, c.about); ok {
		return errAborted
	}
	return nil
}

func (f *faults) hold(c *call, when string) error {
	for _, x := range f.claim(maxFaults, func(x Fault) bool {
		return x.Kind == Delay && (x.When == when || x.When == "" && when == whenBefore) && x.strikes(c.route) && x.matches(c.about)
	}) {
		c.held = true
		if !f.wait(x.For) {
			return errAborted
		}
	}
	return nil
}

func injected(kind FaultKind, status int) error {
	code := codeInternal
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if status == http.StatusServiceUnavailable {
		code = codeUnavailable
	}
	return &problem{status: status, code: code, detail: fmt.Sprintf("fault %s", kind), fault: true}
}

// failLater lets a refund fail after a while, unless the sandbox ends before.
func (f *faults) failLater(refundID string, x Fault, turn func(refundID, status string) error) {
	if f.later.Add(1) > maxLater {
		f.later.Add(-1)
		f.log.Warn("too many refunds wait to fail", slog.String("refund_id", refundID))
		return
	}
	status := x.Status
	if status == "" {
		status = statusFailed
	}
	f.work.Go(func() {
		defer f.later.Add(-1)
		if !f.wait(x.For) {
			return
		}
		if err := turn(refundID, status); err != nil {
			f.log.Warn("refund did not fail later", slog.String("refund_id", refundID), slog.Any("error", err))
		}
	})
}

// clock gives the provider's own time at a place.
func (f *faults) clock(now time.Time, place string, about subject) time.Time {
	x, _ := f.one(ClockSkew, place, about)
	return now.Add(x.For)
}

// keeps reports whether the provider keeps the key of a request.
func (c *call) keeps() bool {
	_, none := c.faults.one(NoIdempotency, routeCreate, c.about)
	return !none
}

// forgets reports whether a key of an age is forgotten within its window.
func (c *call) forgets(age time.Duration) bool {
	return len(c.faults.claim(1, func(x Fault) bool {
		return x.Kind == KeysForgotten && age >= x.For && x.strikes(routeCreate) && x.matches(c.about)
	})) > 0
}

// stamp is the time a request's record is given.
func (c *call) stamp(now time.Time) time.Time { return c.faults.clock(now, onRecords, c.about) }
