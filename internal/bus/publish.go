package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Headers of the broker's protocol.
const (
	headerExpectLast     = "Nats-Expected-Last-Subject-Sequence"
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
	headerScheduler      = "Nats-Scheduler"
	headerScheduleNext   = "Nats-Schedule-Next"
)

// PublishOption adds a condition or a schedule to one publish.
type PublishOption struct {
	name, value, name2, value2 string
	// at, if set, is the value of a schedule, in the desk's time.
	at time.Time
}

// ExpectLast makes the publish a compare-and-set: it is stored only if seq is
// the sequence of the subject's last message, 0 if it must have none.
func ExpectLast(seq uint64) PublishOption {
	return PublishOption{name: headerExpectLast, value: strconv.FormatUint(seq, 10)}
}

// ScheduleAt stores the message as a schedule: the broker publishes its body
// on target, another subject of the same stream, at t or when it is next up
// after t. It may come up to a quarter of a second late and never early. A new
// schedule on the same subject replaces the old one.
func ScheduleAt(t time.Time, target string) PublishOption {
	return PublishOption{name: headerSchedule, at: t, name2: headerScheduleTarget, value2: target}
}

// Publish stores data, which is ready for the wire, on subj and returns its
// stream sequence. The trace of ctx goes with it.
func (c *Conn) Publish(ctx context.Context, subj string, data []byte, opts ...PublishOption) (uint64, error) {
	start := time.Now()
	seq, err := c.publish(ctx, subj, data, opts)
	c.metrics.published(subj, err, time.Since(start))
	if err != nil {
		return 0, fmt.Errorf("publish to %s: %w", subj, err)
	}
	return seq, nil
}

func (c *Conn) publish(ctx context.Context, subj string, data []byte, opts []PublishOption) (uint64, error) {
	m, err := c.request(ctx, subj, c.header(ctx, opts), data, false)
	if err != nil {
		return 0, err
	}
	return acknowledged(m.Data)
}

func (c *Conn) header(ctx context.Context, opts []PublishOption) nats.Header {
	hdr := inject(ctx)
	for _, o := range opts {
		if hdr == nil {
			hdr = nats.Header{}
		}
		if !o.at.IsZero() {
			o.value = "@at " + c.clock.ToBroker(o.at).UTC().Format(time.RFC3339Nano)
		}
		hdr[o.name] = []string{o.value}
		if o.name2 != "" {
			hdr[o.name2] = []string{o.value2}
		}
	}
	return hdr
}

// acknowledged reads a stream's answer to a publish.
func acknowledged(data []byte) (uint64, error) {
	if seq, ok := plainAck(data); ok {
		return seq, nil
	}
	var ack struct {
		Stream string    `json:"stream"`
		Seq    uint64    `json:"seq"`
		Error  *APIError `json:"error"`
	}
	if err := json.Unmarshal(data, &ack); err != nil || (ack.Error == nil && ack.Stream == "") {
		return 0, fmt.Errorf("not an acknowledgement: %w", ErrUncertain)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// plainAck reads the acknowledgement every successful publish gets,
// {"stream":"CASES","seq":42} or with a space after the comma, without the
// cost of a general decoder; anything else is left to one.
func plainAck(data []byte) (seq uint64, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"stream":"`))
	if !ok {
		return 0, false
	}
	name, rest, ok := bytes.Cut(rest, []byte(`"`))
	if !ok || len(name) == 0 {
		return 0, false
	}
	rest = bytes.TrimPrefix(rest, []byte(`,`))
	rest = bytes.TrimPrefix(rest, []byte(` `))
	if rest, ok = bytes.CutPrefix(rest, []byte(`"seq":`)); !ok {
		return 0, false
	}
	if rest, ok = bytes.CutSuffix(rest, []byte(`}`)); !ok || len(rest) == 0 || len(rest) > 19 {
		return 0, false
	}
	for _, d := range rest {
		if d < '0' || d > '9' {
			return 0, false
		}
		seq = seq*10 + uint64(d-'0')
	}
	return seq, true
}

// Send seals payload in env and publishes it.
func (c *Conn) Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...PublishOption) (uint64, error) {
	data, err := envelope.Seal(env, payload)
	if err != nil {
		return 0, fmt.Errorf("send to %s: %w", subj, err)
	}
	return c.Publish(ctx, subj, data, opts...)
}

// CancelSchedule is the publication that removes the schedule on a timer
// subject, if there is one. All cancellations share one subject of which the
// stream keeps the last message, so a cancelled timer leaves nothing behind.
func CancelSchedule(timerSubject string) Publication {
	return Publication{Subject: subject.Timer(subject.None, subject.None), Options: []PublishOption{{
		name: headerScheduler, value: timerSubject,
		name2: headerScheduleNext, value2: "purge",
	}}}
}
