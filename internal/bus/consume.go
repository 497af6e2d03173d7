package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

const (
	defaultWorkers = 8
	maxWorkers     = 1024
	// The window is how many messages may be asked for or wait for a worker;
	// about one per worker, since others could handle them meanwhile.
	minWindow, maxWindow = 16, 256
	// drainPatience bounds how long a stopping consumer waits for handlers.
	drainPatience = 10 * time.Second
)

// Consume handles the messages of one of the service's consumers until ctx
// ends; then it stops pulling, gives back what was not begun, lets the
// handlers in flight finish, bounded, and returns nil. It returns an error
// only when it cannot begin: the consumer is not the service's or not there.
func (c *Conn) Consume(ctx context.Context, consumer string, h Handler, o ConsumeOptions) error {
	return c.consume(ctx, consumer, o, func(ctx context.Context, d *delivery) error {
		m := &Message{
			Stored: d.stored(), Stream: d.meta.Stream,
			Delivered: int(d.meta.NumDelivered), LastDelivery: d.last,
		}
		rej := m.open()
		if rej == nil {
			d.opened = m
			return h(ctx, m)
		}
		if o.OnReject != nil {
			o.OnReject(ctx, m, rej)
		}
		if rej.Reason == envelope.ReasonDeadlinePassed {
			return Drop(rej.Reason) // useless by now, and nobody can mend it; its sender looks after its deadlines
		}
		return Reject(rej.Reason, rej.Err)
	})
}

// open takes subject and envelope apart, in the check order of the contracts.
func (m *Message) open() *envelope.Rejection {
	parts, err := subject.Parse(m.Subject)
	if err != nil {
		return &envelope.Rejection{Reason: envelope.ReasonSubjectMismatch, Err: err}
	}
	m.Parts = parts
	m.Envelope, m.Payload, err = envelope.Open(m.Data, parts, m.Time)
	if err == nil {
		return nil
	}
	if rej, ok := errors.AsType[*envelope.Rejection](err); ok {
		return rej
	}
	return &envelope.Rejection{Reason: envelope.ReasonUndecodable, Err: err}
}

// ConsumeRaw is Consume for messages that are not envelopes. OnReject is not
// used.
func (c *Conn) ConsumeRaw(ctx context.Context, consumer string, h func(context.Context, *Raw) error, o ConsumeOptions) error {
	return c.consume(ctx, consumer, o, func(ctx context.Context, d *delivery) error {
		return h(ctx, &Raw{Stored: d.stored(), Pending: d.meta.NumPending})
	})
}

// pump moves the messages of one consumer through its workers.
type pump struct {
	conn   *Conn
	spec   roles.Consumer
	opts   ConsumeOptions
	handle func(context.Context, *delivery) error
	held   *held
	pulls  *puller

	queue    chan *delivery
	stopping chan struct{}
	workers  sync.WaitGroup
	flight   flight
}

func (c *Conn) consume(ctx context.Context, consumer string, o ConsumeOptions, handle func(context.Context, *delivery) error) error {
	spec, ok := c.cfg.Manifest.Consumer(consumer)
	if !ok || spec.Service != c.cfg.Service {
		return fmt.Errorf("consume %s: not a consumer of %s: %w", consumer, c.cfg.Service, ErrDenied)
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	o.Workers = min(o.Workers, maxWorkers)
	if o.Timeout <= 0 {
		o.Timeout = spec.AckWait / 3
	}
	if err := c.exists(ctx, "CONSUMER.INFO."+spec.Stream+"."+spec.Name, struct{}{}); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("consume %s: %w", consumer, err)
	}
	// Handlers outlive ctx, so that what is in flight can finish.
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	p := &pump{
		conn: c, spec: spec, opts: o, handle: handle, held: newHeld(spec.MaxAckPending),
		queue: make(chan *delivery, min(max(o.Workers, minWindow), maxWindow)), stopping: make(chan struct{}),
		flight: flight{open: make(map[*delivery]struct{})},
	}
	pulls, err := newPuller(p)
	if err != nil {
		abort()
		return fmt.Errorf("consume %s: %w", consumer, err)
	}
	p.pulls = pulls
	for range o.Workers {
		p.workers.Go(func() { p.work(base) })
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(base)
	}()
	pulls.run(ctx)
	close(p.stopping)
	pulls.stop()
	p.drain(abort)
	<-watched
	c.flush()
	c.health.clear(consumer)
	c.health.clear(p.handlers())
	return nil
}
