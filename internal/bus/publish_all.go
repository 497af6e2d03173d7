package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Publication is one message of PublishAll.
type Publication struct {
	Subject string
	Data    []byte
	Options []PublishOption
}

// Published is what became of one publication.
type Published struct {
	Seq uint64
	Err error
}

// PublishAll is Publish for several messages at once: all are sent, then all
// answers are awaited, together for at most RequestTimeout. Each succeeds or
// fails by itself; the answers are in the order of the messages.
func (c *Conn) PublishAll(ctx context.Context, pubs ...Publication) []Published {
	start := time.Now()
	out := make([]Published, len(pubs))
	if len(pubs) == 1 {
		out[0].Seq, out[0].Err = c.Publish(ctx, pubs[0].Subject, pubs[0].Data, pubs[0].Options...)
		return out
	}
	type flight struct {
		id uint64
		w  *waiter
	}
	sent := make([]flight, len(pubs))
	for i, p := range pubs {
		id, reply, w := c.replies.expect(p.Subject, c.nc.Stats().Reconnects)
		if err := c.nc.PublishMsg(&nats.Msg{Subject: p.Subject, Reply: reply, Header: c.header(ctx, p.Options), Data: p.Data}); err != nil {
			c.replies.forget(id) // not sent: it is tried by itself below
			continue
		}
		sent[i] = flight{id, w}
		c.sent(ctx, p.Subject)
	}
	limited, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	for i, p := range pubs {
		out[i].Err = errNoResponder
		if w := sent[i].w; w != nil {
			var m *nats.Msg
			if m, out[i].Err = c.await(limited, nil, w); out[i].Err == nil {
				out[i].Seq, out[i].Err = acknowledged(m.Data)
			}
			c.replies.forget(sent[i].id)
		}
		if errors.Is(out[i].Err, errNoResponder) { // nobody got it, so it may be sent again
			out[i].Seq, out[i].Err = c.publish(ctx, p.Subject, p.Data, p.Options)
		}
		c.metrics.published(p.Subject, out[i].Err, time.Since(start))
		if out[i].Err != nil {
			out[i].Err = fmt.Errorf("publish to %s: %w", p.Subject, out[i].Err)
		}
	}
	return out
}
