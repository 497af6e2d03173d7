package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// Headers the broker puts on what it republishes or reads.
const (
	headerStream   = "Nats-Stream"
	headerSubject  = "Nats-Subject"
	headerSequence = "Nats-Sequence"
)

// A reader that falls this far behind loses messages instead of memory.
const (
	livePendingMessages = 16384
	livePendingBytes    = 32 << 20
)

// Live calls fn, one message at a time, with what the broker republishes on a
// pattern of the service's Live grants. It is a hint, not a log: messages are
// lost while disconnected or when fn is too slow, so read the stored state
// again after OnServerChange.
//
// Only what a stream republished is passed on. Other services could aim the
// answers to their own requests at these subjects, but those lack the headers
// that name the stream.
func (c *Conn) Live(ctx context.Context, pattern string, fn func(subj string, data []byte)) (stop func(), err error) {
	if !slices.Contains(c.role.Live, pattern) {
		return nil, fmt.Errorf("subscribe to %s: %w", pattern, ErrDenied)
	}
	var stream, prefix string
	for _, s := range c.cfg.Manifest.Streams {
		if s.RepublishTo != "" && strings.HasPrefix(pattern, s.RepublishTo) {
			stream, prefix = s.Name, s.RepublishTo
		}
	}
	if stream == "" {
		return nil, fmt.Errorf("subscribe to %s: no stream republishes there", pattern)
	}
	sub, err := c.nc.Subscribe(pattern, func(m *nats.Msg) {
		if m.Header.Get(headerStream) != stream || prefix+m.Header.Get(headerSubject) != m.Subject {
			c.metrics.strays.Add(bg, 1)
			return
		}
		fn(m.Subject, m.Data)
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w: %w", pattern, ErrUnavailable, err)
	}
	stop = func() { _ = sub.Unsubscribe() } // fails only when the connection is gone, and the subscription with it
	if err := sub.SetPendingLimits(livePendingMessages, livePendingBytes); err != nil {
		stop()
		return nil, fmt.Errorf("subscribe to %s: %w", pattern, err)
	}
	flushCtx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	if err := c.nc.FlushWithContext(flushCtx); err != nil {
		stop()
		return nil, fmt.Errorf("subscribe to %s: %w: %w", pattern, ErrUnavailable, err)
	}
	return stop, nil
}
