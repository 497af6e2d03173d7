package bus

import "context"

type sentKey struct{}

// WithSent gives a context whose publishes and requests call fn, each with its
// subject, when the broker has the message and before its answer is looked at.
// A test stands there in fn, at the place where a process can die and nobody
// knows what became of the message. It costs a round trip for each message.
func WithSent(ctx context.Context, fn func(subject string)) context.Context {
	return context.WithValue(ctx, sentKey{}, fn)
}

func (c *Conn) sent(ctx context.Context, subj string) {
	if fn, ok := ctx.Value(sentKey{}).(func(string)); ok {
		c.atBroker()
		fn(subj)
	}
}

// atBroker waits, bounded, until the broker has taken in what was sent before.
func (c *Conn) atBroker() {
	if err := c.nc.FlushTimeout(c.cfg.RequestTimeout); err != nil {
		c.log.Debug("not known to be at the broker") // the connection is down, and what was sent on it is in doubt
	}
}
