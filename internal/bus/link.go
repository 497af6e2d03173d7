package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// link follows the state of the connection and tells whoever waits for it.
type link struct {
	conn    *Conn
	replies atomic.Pointer[replies]

	mu sync.Mutex
	// up is closed by the next reconnect.
	up       chan struct{}
	refused  error // of something granted
	changed  []func()
	nudge    chan struct{}
	done     chan struct{}
	finished sync.WaitGroup
}

func newLink(c *Conn) *link {
	l := &link{conn: c, up: make(chan struct{}), nudge: make(chan struct{}, 1), done: make(chan struct{})}
	l.finished.Go(l.tell)
	return l
}

// reconnected gives a channel that the next reconnect closes. Take it before
// trying what may fail, then no reconnect is missed.
func (l *link) reconnected() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

func (l *link) violation() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

func (l *link) onChange(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = append(l.changed, fn)
}

// onDisconnect ends what was in flight. It may be called late, when requests
// already travel on the next connection; those are spared.
func (l *link) onDisconnect(nc *nats.Conn, err error) {
	if err != nil { // without one it was closed on purpose
		l.conn.metrics.disconnects.Add(bg, 1)
		l.conn.log.Warn("broker connection lost", slog.Any("error", err))
	}
	r := l.replies.Load()
	if r == nil {
		return
	}
	lost := nc.Stats().Reconnects
	if nc.IsConnected() {
		if lost == 0 {
			return
		}
		lost-- // that one is up
	}
	r.failLinks(lost, errLost)
}

func (l *link) onReconnect(nc *nats.Conn) {
	l.conn.log.Info("broker connection is back", slog.String("server", nc.ConnectedServerId()))
	l.mu.Lock()
	close(l.up)
	l.up = make(chan struct{})
	l.refused = nil
	l.mu.Unlock()
	select {
	case l.nudge <- struct{}{}:
	default: // one call is already waiting
	}
}

// tell runs the OnServerChange calls, off the client library's callback queue.
func (l *link) tell() {
	for {
		select {
		case <-l.done:
			return
		case <-l.nudge:
		}
		l.mu.Lock()
		fns := l.changed[:len(l.changed):len(l.changed)]
		l.mu.Unlock()
		for _, fn := range fns {
			fn()
		}
	}
}

func (l *link) close() {
	close(l.done)
	l.finished.Wait()
}

var refusedRE = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "(\S+)"`)

// onError joins a permission violation, which arrives apart from any request,
// to the requests it refused.
func (l *link) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	m := refusedRE.FindStringSubmatch(err.Error())
	if m == nil || !errors.Is(err, nats.ErrPermissionViolation) {
		l.conn.metrics.errors.Add(bg, 1)
		attrs := []any{slog.Any("error", err)}
		if sub != nil {
			attrs = append(attrs, slog.String("subscription", sub.Subject))
		}
		l.conn.log.Warn("broker connection error", attrs...)
		return
	}
	kind, subj := m[1], m[2]
	denied := fmt.Errorf("%s to %s: %w", kind, subj, ErrDenied)
	l.conn.metrics.denied.Add(bg, 1)
	l.conn.log.Error("broker refused the service's credential", slog.String("kind", kind), slog.String("subject", subj))
	if l.conn.grants.allow(kind, subj) {
		l.mu.Lock()
		l.refused = denied
		l.mu.Unlock()
	}
	if r := l.replies.Load(); r != nil && kind != "subscription" {
		r.failSubject(subj, denied)
	}
}
