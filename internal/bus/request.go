package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// A stream that changes its leader or is just being loaded has nobody
	// listening for a moment.
	maxTries         = 5
	noResponderPause = 50 * time.Millisecond
)

var (
	errNoResponder = errors.New("nobody listens on the subject")
	errLost        = fmt.Errorf("connection lost: %w", ErrUncertain)
)

// request sends a message and waits for the one answer, for at most
// RequestTimeout. It sends again when the broker said that nobody got it, and
// after a lost connection only what is safe to send twice.
func (c *Conn) request(ctx context.Context, subj string, hdr nats.Header, data []byte, safeTwice bool) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	limit := time.NewTimer(c.cfg.RequestTimeout)
	defer limit.Stop()
	for try := 1; ; try++ {
		m, err := c.roundTrip(ctx, limit.C, subj, hdr, data)
		switch {
		case safeTwice && errors.Is(err, errLost) && try < maxTries:
			continue // and wait there for the connection
		case !errors.Is(err, errNoResponder):
			return m, err
		case try == maxTries:
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err := sleep(ctx, noResponderPause); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

// roundTrip sends once; while the connection is down it waits for it first.
func (c *Conn) roundTrip(ctx context.Context, limit <-chan time.Time, subj string, hdr nats.Header, data []byte) (*nats.Msg, error) {
	for {
		up := c.link.reconnected()
		id, reply, w := c.replies.expect(subj, c.nc.Stats().Reconnects)
		err := c.nc.PublishMsg(&nats.Msg{Subject: subj, Reply: reply, Header: hdr, Data: data})
		if err == nil {
			c.sent(ctx, subj)
			m, err := c.await(ctx, limit, w)
			c.replies.forget(id)
			return m, err
		}
		c.replies.forget(id)
		switch {
		case errors.Is(err, nats.ErrReconnectBufExceeded): // nothing is sent while disconnected
		case errors.Is(err, nats.ErrConnectionClosed):
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		default: // the message itself cannot be sent, e.g. it is too large
			return nil, err
		}
		select {
		case <-up:
		case <-limit:
			return nil, fmt.Errorf("not connected for %s: %w", c.cfg.RequestTimeout, ErrUnavailable)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
	}
}

func (c *Conn) await(ctx context.Context, limit <-chan time.Time, w *waiter) (*nats.Msg, error) {
	select {
	case a := <-w.answer:
		if a.err != nil {
			return nil, a.err
		}
		if len(a.msg.Data) == 0 && a.msg.Header.Get("Status") == "503" {
			return nil, errNoResponder
		}
		return a.msg, nil
	case <-limit:
		return nil, fmt.Errorf("no answer within %s: %w", c.cfg.RequestTimeout, ErrUncertain)
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ctx.Err(), ErrUncertain)
	}
}
