package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/roles"
	"github.com/amends-dev/amends/internal/subject"
)

const (
	defaultWorkers = 8
	maxWorkers     = 1024
	// Messages asked for at once. About one per worker: what waits in this
	// process for a worker uses up its AckWait.
	minPull, maxPull = 16, 256
	pullExpiry       = 10 * time.Second
	pullHeartbeat    = 2 * time.Second
	// drainPatience bounds how long a stopping consumer waits for handlers.
	drainPatience = 10 * time.Second
	// stopPatience bounds how long the end of a subscription takes.
	stopPatience = 2 * time.Second
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
			return h(ctx, m)
		}
		if o.OnReject != nil {
			o.OnReject(ctx, m, rej)
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

	queue    chan jetstream.Msg
	stopping chan struct{}
	// base is the context of handlers: it outlives the consuming context so
	// that what is in flight can finish.
	base    context.Context
	abort   context.CancelFunc
	workers sync.WaitGroup
	flight  flight
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
		o.Timeout = spec.AckWait * 2 / 3
	}
	base, abort := context.WithCancel(context.WithoutCancel(ctx))
	p := &pump{
		conn: c, spec: spec, opts: o, handle: handle, held: newHeld(spec.MaxAckPending),
		queue: make(chan jetstream.Msg), stopping: make(chan struct{}),
		base: base, abort: abort, flight: flight{open: make(map[*delivery]struct{})},
	}
	for range o.Workers {
		p.workers.Go(p.work)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.watch()
	}()
	sub, err := p.pull(ctx)
	p.stop(sub)
	p.drain()
	<-watched
	c.health.clear(consumer)
	if err != nil {
		return fmt.Errorf("consume %s: %w", consumer, err)
	}
	return nil
}

// pull keeps one pull subscription going until ctx ends and returns the one
// that is then open, if any. It fails only if the consumer is not there at all.
func (p *pump) pull(ctx context.Context) (jetstream.ConsumeContext, error) {
	for begun, attempt := false, 1; ; attempt++ {
		sub, err := p.subscribe(ctx)
		if err == nil {
			begun, attempt = true, 0
			p.conn.health.clear(p.spec.Name)
			select {
			case <-ctx.Done():
				return sub, nil
			case <-sub.Closed():
				err = errors.New("the subscription ended")
			}
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		if !begun && missing(err) {
			return nil, fmt.Errorf("%w: %w", ErrMissing, err)
		}
		p.conn.health.set(p.spec.Name, err)
		p.conn.log.Warn("consuming interrupted", slog.String("consumer", p.spec.Name), slog.Any("error", err))
		if sleep(ctx, backoff(attempt)) != nil {
			return nil, nil
		}
	}
}

func missing(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound)
}

func (p *pump) subscribe(ctx context.Context) (jetstream.ConsumeContext, error) {
	cons, err := p.conn.js.Consumer(ctx, p.spec.Stream, p.spec.Name)
	if err != nil {
		return nil, err
	}
	return cons.Consume(p.receive,
		jetstream.PullMaxMessages(min(max(p.opts.Workers, minPull), maxPull)),
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			p.conn.metrics.errors.Add(bg, 1)
			p.conn.log.Info("pull interrupted", slog.String("consumer", p.spec.Name), slog.Any("error", err))
		}))
}

// receive hands a message to a worker; it blocks while all are busy, which
// stops the pulling.
func (p *pump) receive(msg jetstream.Msg) {
	select {
	case p.queue <- msg:
	case <-p.stopping:
		p.giveBack(msg)
	}
}

// stop ends the subscription; what it still holds is given back.
func (p *pump) stop(sub jetstream.ConsumeContext) {
	close(p.stopping)
	if sub == nil {
		return
	}
	sub.Drain()
	select {
	case <-sub.Closed():
	case <-time.After(stopPatience):
	}
}
