package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullExpiry    = 10 * time.Second
	pullHeartbeat = 2 * time.Second
	// pullSilence without a message or a heartbeat means that the broker has
	// forgotten what it was asked for.
	pullSilence = 5 * time.Second
	// stopQuiet without an arrival means that nothing more is on its way;
	// stopPatience bounds the wait for that.
	stopQuiet    = 50 * time.Millisecond
	stopPatience = time.Second
	ackPrefix    = "$JS.ACK."
)

var errSilent = errors.New("the broker is silent")

// puller keeps a bounded number of messages asked for on one subscription.
//
// It is written here and not taken from the client library for three reasons:
// what has arrived must be visible while it waits, to be kept alive; a stopping
// consumer must first receive what it has asked for, because what the broker
// sends to an inbox that has just gone waits out its AckWait; and the library
// takes an empty message with a Status header for a word of the broker, so that
// anybody could publish one that is never settled.
type puller struct {
	p      *pump
	sub    *nats.Subscription
	inbox  string
	call   string
	window int
	// wake asks the loop to look at the window again.
	wake chan struct{}

	mu    sync.Mutex
	asked int // for and not arrived
	round uint64
	heard time.Time
	fault error // that ended a request
	kept  []*delivery
}

func newPuller(p *pump) (*puller, error) {
	l := &puller{
		p: p, inbox: p.conn.nc.NewInbox() + ".", window: cap(p.queue), wake: make(chan struct{}, 1), heard: time.Now(),
		call: p.conn.cfg.APIPrefix + ".CONSUMER.MSG.NEXT." + p.spec.Stream + "." + p.spec.Name,
	}
	var err error
	if l.sub, err = p.conn.nc.Subscribe(l.inbox+"*", l.receive); err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	if err := l.sub.SetPendingLimits(-1, -1); err != nil { // the window bounds it
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return l, nil
}

// run asks for messages until ctx ends.
func (l *puller) run(ctx context.Context) {
	look := time.NewTicker(pullHeartbeat)
	defer look.Stop()
	for faults := 0; ; {
		up := l.p.conn.link.reconnected()
		if err := l.ask(time.Now()); err == nil {
			faults = 0
			l.p.conn.health.clear(l.p.spec.Name)
		} else if ctx.Err() == nil {
			faults++
			l.p.conn.metrics.errors.Add(bg, 1)
			l.p.conn.health.set(l.p.spec.Name, err)
			l.p.conn.log.Warn("consuming interrupted", slog.String("consumer", l.p.spec.Name), slog.Any("error", err))
			if sleep(ctx, backoff(faults)) != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-look.C:
		case <-up:
			l.forget() // what was asked on the old connection is gone
		}
	}
}

// ask fills the window when half of it is free, or says what went wrong since
// it last did.
func (l *puller) ask(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.fault; err != nil {
		l.fault = nil
		return err
	}
	if l.asked > 0 && now.Sub(l.heard) > pullSilence && l.p.conn.nc.IsConnected() {
		l.asked, l.heard = 0, now
		l.round++
		return errSilent
	}
	n := l.window - l.asked - len(l.p.queue)
	if n < (l.window+1)/2 {
		return nil
	}
	body, err := json.Marshal(map[string]int64{"batch": int64(n), "expires": int64(pullExpiry), "idle_heartbeat": int64(pullHeartbeat)})
	if err != nil {
		return fmt.Errorf("encode a pull: %w", err)
	}
	err = l.p.conn.nc.PublishRequest(l.call, l.inbox+strconv.FormatUint(l.round, 36), body)
	if errors.Is(err, nats.ErrReconnectBufExceeded) {
		return nil // the reconnect wakes the loop
	}
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	l.asked += n
	l.heard = now
	return nil
}

// nudge makes the loop look again.
func (l *puller) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *puller) forget() {
	l.mu.Lock()
	l.asked = 0
	l.round++
	l.mu.Unlock()
}

func (l *puller) receive(m *nats.Msg) {
	if strings.HasPrefix(m.Reply, ackPrefix) {
		l.arrived(m)
	} else {
		l.told(m)
	}
}

// arrived puts a message where the workers find it. From here on it is kept
// alive; its AckWait has begun.
func (l *puller) arrived(m *nats.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		l.p.conn.metrics.errors.Add(bg, 1)
		return
	}
	now := time.Now()
	d := &delivery{msg: m, meta: meta, at: l.p.conn.clock.FromBroker(meta.Timestamp), last: int(meta.NumDelivered) >= l.p.spec.MaxDeliveries(), extended: now}
	l.p.flight.add(d)
	l.mu.Lock()
	l.asked = max(l.asked-1, 0)
	l.heard = now
	l.mu.Unlock()
	select {
	case l.p.queue <- d:
	case <-l.p.stopping:
		l.mu.Lock()
		l.kept = append(l.kept, d)
		l.mu.Unlock()
	}
}

// told takes a status of the broker: a heartbeat, or the end of a request with
// what is left of it.
func (l *puller) told(m *nats.Msg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Subject != l.inbox+strconv.FormatUint(l.round, 36) {
		return // about a request that no longer counts
	}
	l.heard = time.Now()
	left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	switch status := m.Header.Get("Status"); {
	case status == "100":
		return
	case err == nil && (status == "408" || status == "404" || status == "409"):
		l.asked = max(l.asked-left, 0)
	default:
		l.asked = 0
		l.round++
		l.fault = fmt.Errorf("status %s: %s", status, m.Header.Get("Description"))
	}
	l.nudge()
}

// stop waits until what was asked for has come or nothing comes any more, then
// ends the subscription. What no worker has begun is given back.
func (l *puller) stop() {
	l.settleDown()
	if err := l.sub.Unsubscribe(); err != nil {
		l.p.conn.log.Debug("subscription not ended", slog.Any("error", err)) // the connection is closed, and it with it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.kept {
		l.p.giveBack(d)
	}
	l.kept = nil
	for {
		select {
		case d := <-l.p.queue:
			l.p.giveBack(d)
		default:
			return
		}
	}
}

func (l *puller) settleDown() {
	begun := time.Now()
	tick := time.NewTicker(stopQuiet / 10)
	defer tick.Stop()
	for now := range tick.C {
		l.mu.Lock()
		settled := l.asked == 0 || now.Sub(later(l.heard, begun)) > stopQuiet
		l.mu.Unlock()
		if settled || now.Sub(begun) > stopPatience || !l.p.conn.nc.IsConnected() {
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
