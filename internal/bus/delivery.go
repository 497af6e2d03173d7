package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amends-dev/amends/internal/subject"
)

// settlePatience bounds how long a worker waits for a lost connection to come
// back before it leaves a message to its AckWait.
const settlePatience = 10 * time.Second

var (
	errHung  = errors.New("the handler did not return in time")
	errPanic = errors.New("the handler panicked")
	errSpent = errors.New("the allowed deliveries ended without an outcome")
)

// delivery is one handing out of one message.
type delivery struct {
	msg   jetstream.Msg
	meta  *jetstream.MsgMetadata
	last  bool
	begun time.Time
	// claimed by whoever settles it: its worker, or the watch when it hangs.
	claimed  atomic.Bool
	replaced bool      // its worker was; guarded by flight
	extended time.Time // guarded by flight
}

func (d *delivery) claim() bool { return d.claimed.CompareAndSwap(false, true) }

func (d *delivery) stored() Stored {
	return Stored{
		Subject: d.msg.Subject(), Seq: d.meta.Sequence.Stream, Time: d.meta.Timestamp,
		Header: d.msg.Headers(), Data: d.msg.Data(),
	}
}

// caseKey names the case a message belongs to, whoever sent it.
func (d *delivery) caseKey() string {
	parts, err := subject.Parse(d.msg.Subject())
	if err != nil {
		return subject.None
	}
	return parts.Tenant + "." + parts.CaseID
}

func (p *pump) work() {
	for {
		select {
		case msg := <-p.queue:
			if !p.process(msg) {
				return // another worker has taken this one's place
			}
		case <-p.stopping:
			return
		}
	}
}

func (p *pump) process(msg jetstream.Msg) (goOn bool) {
	meta, err := msg.Metadata()
	if err != nil {
		p.conn.metrics.settled(p.spec.Name, "ignored", "", 0)
		return true // not from a stream; nothing to settle
	}
	now := time.Now()
	d := &delivery{msg: msg, meta: meta, begun: now, extended: now}
	spent := int(meta.NumDelivered) - p.spec.MaxDeliveries()
	d.last = spent >= 0
	p.flight.add(d)
	ctx, cancel := context.WithTimeout(extract(p.base, msg.Headers()), p.opts.Timeout)
	defer cancel()
	if spent > 0 {
		err = Reject(ReasonDeliveriesExhausted, errSpent) // it may be what ends this process
	} else {
		err = p.call(ctx, d)
	}
	if d.claim() {
		p.settle(d, err)
		p.flight.remove(d)
		return true
	}
	return !p.returned(d)
}

// call runs the handler; one that panics has failed like one that returned an
// error, so that a poison message ends as a dead letter.
func (p *pump) call(ctx context.Context, d *delivery) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.conn.log.Error("handler panicked", slog.String("consumer", p.spec.Name),
				slog.String("panic", Mask(fmt.Sprint(r))), slog.String("stack", string(debug.Stack())))
			err = errPanic
		}
	}()
	return p.handle(ctx, d)
}

// settle turns a handler's outcome into the broker's terms. A message is
// terminated only after its dead letter is stored; else it comes again.
func (p *pump) settle(d *delivery, err error) {
	took := time.Since(d.begun)
	if err == nil {
		p.finish(d, "acked", "", took, d.msg.Ack)
		return
	}
	o := classify(err)
	switch {
	case o.kind == outcomeDrop:
		reason := bounded(o.reason, maxReason)
		p.conn.log.Info("message dropped", slog.String("consumer", p.spec.Name),
			slog.String("reason", reason), slog.String("case", d.caseKey()), slog.Uint64("sequence", d.meta.Sequence.Stream))
		p.finish(d, "dropped", reason, took, d.msg.Ack)
	case o.kind == outcomeReject:
		p.bury(d, bounded(o.reason, maxReason), o.err, took)
	case d.last:
		p.bury(d, ReasonDeliveriesExhausted, o.err, took)
	default:
		delay := p.spec.Backoff[d.meta.NumDelivered-1]
		now := time.Now()
		if !p.held.take(d.caseKey(), now, now.Add(delay)) {
			p.bury(d, ReasonCaseBacklog, o.err, took)
			return
		}
		p.conn.log.Info("message will be tried again", slog.String("consumer", p.spec.Name),
			slog.String("case", d.caseKey()), slog.Uint64("delivered", d.meta.NumDelivered), slog.String("error", Mask(o.Error())))
		p.finish(d, "retried", "", took, func() error { return d.msg.NakWithDelay(delay) })
	}
}

// bury stores the dead letter, then ends the message.
func (p *pump) bury(d *delivery, reason string, cause error, took time.Duration) {
	ctx := extract(p.base, d.msg.Headers())
	if err := p.deadLetter(ctx, d, reason, cause); err != nil {
		p.conn.log.Error("dead letter not stored", slog.String("consumer", p.spec.Name),
			slog.String("reason", reason), slog.Any("error", err))
		p.finish(d, "dead_letter_failed", reason, took, func() error { return d.msg.NakWithDelay(p.lastDelay()) })
		return
	}
	p.finish(d, "dead_lettered", reason, took, func() error { return d.msg.TermWithReason(reason) })
}

// lastDelay is the longest of the consumer's delays.
func (p *pump) lastDelay() time.Duration {
	if n := len(p.spec.Backoff); n > 0 {
		return p.spec.Backoff[n-1]
	}
	return p.spec.AckWait
}

// giveBack hands a message that was not begun to another process at once.
func (p *pump) giveBack(msg jetstream.Msg) {
	outcome := "returned"
	if err := msg.Nak(); err != nil {
		outcome = "left" // for its AckWait
	}
	p.conn.metrics.settled(p.spec.Name, outcome, "", 0)
}

// finish sends the settlement; while disconnected it waits for the connection,
// since a message left alone would wait out its AckWait.
func (p *pump) finish(d *delivery, outcome, reason string, took time.Duration, send func() error) {
	var giveUp <-chan time.Time
	for {
		up := p.conn.link.reconnected()
		err := send()
		if err == nil {
			break
		}
		if !errors.Is(err, nats.ErrReconnectBufExceeded) {
			p.conn.log.Warn("message not settled", slog.String("consumer", p.spec.Name),
				slog.String("outcome", outcome), slog.Any("error", err))
			outcome = "left"
			break
		}
		if giveUp == nil {
			giveUp = time.After(settlePatience)
		}
		select {
		case <-up:
			continue
		case <-giveUp:
		case <-p.base.Done():
		}
		outcome = "left"
		break
	}
	p.conn.metrics.settled(p.spec.Name, outcome, reason, took)
}
