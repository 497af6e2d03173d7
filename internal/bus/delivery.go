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
	msg  *nats.Msg
	meta *nats.MsgMetadata
	// at is when the message was stored, in the desk's time.
	at   time.Time
	last bool
	// opened is the message once its envelope has been opened.
	opened *Message
	// claimed by whoever settles it: its worker, or the watch when it hangs.
	claimed atomic.Bool

	// Guarded by flight.
	extended time.Time // it arrived, or its last heartbeat
	begun    time.Time // its handling; zero while it waits for a worker
	replaced bool      // its worker was
}

func (d *delivery) claim() bool { return d.claimed.CompareAndSwap(false, true) }

func (d *delivery) stored() Stored {
	return Stored{
		Subject: d.msg.Subject, Seq: d.meta.Sequence.Stream, Time: d.at,
		Header: d.msg.Header, Data: d.msg.Data,
	}
}

// caseKey names the case a message belongs to, whoever sent it.
func (d *delivery) caseKey() string {
	parts, err := subject.Parse(d.msg.Subject)
	if err != nil {
		return subject.None
	}
	return parts.Tenant + "." + parts.CaseID
}

// The broker's words for the end of a delivery.
const (
	wordAck      = "+ACK"
	wordNak      = "-NAK"
	wordTerm     = "+TERM"
	wordProgress = "+WPI"
)

func nakAfter(d time.Duration) string {
	return fmt.Sprintf(`%s {"delay":%d}`, wordNak, d.Nanoseconds())
}

// say answers the broker about a delivery; no answer comes to that.
func (p *pump) say(d *delivery, word string) error {
	return p.conn.nc.Publish(d.msg.Reply, []byte(word))
}

func (p *pump) work(base context.Context) {
	for {
		select {
		case <-p.stopping:
			return
		default:
		}
		select {
		case d := <-p.queue:
			p.pulls.nudge()
			if !p.process(base, d) {
				return // another worker has taken this one's place
			}
		case <-p.stopping:
			return
		}
	}
}

func (p *pump) process(base context.Context, d *delivery) (goOn bool) {
	p.flight.begin(d, time.Now())
	ctx, cancel := context.WithTimeout(extract(base, d.msg.Header), p.opts.Timeout)
	defer cancel()
	var err error
	if int(d.meta.NumDelivered) > p.spec.MaxDeliveries() {
		err = Reject(ReasonDeliveriesExhausted, errSpent) // it may be what ends this process
	} else {
		err = p.call(ctx, d)
	}
	if d.claim() {
		p.settle(base, d, err)
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
func (p *pump) settle(ctx context.Context, d *delivery, err error) {
	took := time.Since(d.begun)
	if err == nil {
		p.finish(ctx, d, "acked", "", took, wordAck)
		if p.opts.OnAcked != nil && d.opened != nil {
			p.conn.atBroker()
			p.opts.OnAcked(ctx, d.opened)
		}
		return
	}
	o := classify(err)
	switch {
	case o.kind == outcomeDrop:
		reason := reasonCode(o.reason)
		p.conn.log.Info("message dropped", slog.String("consumer", p.spec.Name),
			slog.String("reason", reason), slog.String("case", d.caseKey()), slog.Uint64("sequence", d.meta.Sequence.Stream))
		p.finish(ctx, d, "dropped", reason, took, wordAck)
	case o.kind == outcomeReject:
		p.bury(ctx, d, reasonCode(o.reason), o.err, took)
	case d.last:
		p.bury(ctx, d, ReasonDeliveriesExhausted, o.err, took)
	default:
		delay := p.spec.Backoff[d.meta.NumDelivered-1]
		now := time.Now()
		if !p.held.take(d.caseKey(), now, now.Add(delay)) {
			p.bury(ctx, d, ReasonCaseBacklog, o.err, took)
			return
		}
		p.conn.log.Info("message will be tried again", slog.String("consumer", p.spec.Name),
			slog.String("case", d.caseKey()), slog.Uint64("delivered", d.meta.NumDelivered), slog.String("error", Mask(o.Error())))
		p.finish(ctx, d, "retried", "", took, nakAfter(delay))
	}
}

// bury stores the dead letter, then ends the message.
func (p *pump) bury(ctx context.Context, d *delivery, reason string, cause error, took time.Duration) {
	if err := p.deadLetter(extract(ctx, d.msg.Header), d, reason, cause); err != nil {
		p.conn.log.Error("dead letter not stored", slog.String("consumer", p.spec.Name),
			slog.String("reason", reason), slog.Any("error", err))
		p.finish(ctx, d, "dead_letter_failed", reason, took, nakAfter(p.lastDelay()))
		return
	}
	p.finish(ctx, d, "dead_lettered", reason, took, wordTerm+" "+reason)
}

// lastDelay is the longest of the consumer's delays.
func (p *pump) lastDelay() time.Duration {
	if n := len(p.spec.Backoff); n > 0 {
		return p.spec.Backoff[n-1]
	}
	return p.spec.AckWait
}

// giveBack hands a message that was not begun to another process at once.
func (p *pump) giveBack(d *delivery) {
	p.flight.remove(d)
	outcome := "returned"
	if p.say(d, wordNak) != nil {
		outcome = "left" // for its AckWait
	}
	p.conn.metrics.settled(p.spec.Name, outcome, "", 0)
}

// finish sends the settlement; while disconnected it waits for the connection,
// since a message left alone would wait out its AckWait.
func (p *pump) finish(ctx context.Context, d *delivery, outcome, reason string, took time.Duration, word string) {
	var giveUp <-chan time.Time
	for {
		up := p.conn.link.reconnected()
		err := p.say(d, word)
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
		case <-ctx.Done():
		}
		outcome = "left"
		break
	}
	p.conn.metrics.settled(p.spec.Name, outcome, reason, took)
}
