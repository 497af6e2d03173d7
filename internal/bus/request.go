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
	noResponderTries = 5
	noResponderPause = 50 * time.Millisecond
)

var errNoResponder = errors.New("nobody listens on the subject")

// request sends msg and waits for the one answer, for at most RequestTimeout.
// It sends again only when the broker said that nobody got the message.
func (c *Conn) request(ctx context.Context, subj string, hdr nats.Header, data []byte) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	limit := time.NewTimer(c.cfg.RequestTimeout)
	defer limit.Stop()
	for try := 1; ; try++ {
		m, err := c.roundTrip(ctx, limit.C, subj, hdr, data)
		if !errors.Is(err, errNoResponder) {
			return m, err
		}
		if try == noResponderTries {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err := sleep(ctx, noResponderPause); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
}

func (c *Conn) roundTrip(ctx context.Context, limit <-chan time.Time, subj string, hdr nats.Header, data []byte) (*nats.Msg, error) {
	id, reply, w := c.replies.expect(subj)
	defer c.replies.forget(id)
	msg := &nats.Msg{Subject: subj, Reply: reply, Header: hdr, Data: data}
	if err := c.send(ctx, limit, msg); err != nil {
		return nil, err
	}
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

// send hands msg to the connection; while it is down, waits for it.
func (c *Conn) send(ctx context.Context, limit <-chan time.Time, msg *nats.Msg) error {
	for {
		up := c.link.reconnected()
		err := c.nc.PublishMsg(msg)
		if err == nil {
			return nil
		}
		switch {
		case errors.Is(err, nats.ErrReconnectBufExceeded):
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		default: // the message itself cannot be sent, e.g. it is too large
			return err
		}
		select {
		case <-up:
		case <-limit:
			return fmt.Errorf("not connected for %s: %w", c.cfg.RequestTimeout, ErrUnavailable)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
		}
	}
}
