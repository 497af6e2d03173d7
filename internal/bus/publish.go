package bus

import (
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
type PublishOption struct{ name, value, name2, value2 string }

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
	return PublishOption{
		name: headerSchedule, value: "@at " + t.UTC().Format(time.RFC3339Nano),
		name2: headerScheduleTarget, value2: target,
	}
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
	hdr := inject(ctx)
	for _, o := range opts {
		if hdr == nil {
			hdr = nats.Header{}
		}
		hdr[o.name] = []string{o.value}
		if o.name2 != "" {
			hdr[o.name2] = []string{o.value2}
		}
	}
	m, err := c.request(ctx, subj, hdr, data, false)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Stream string    `json:"stream"`
		Seq    uint64    `json:"seq"`
		Error  *APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil || (ack.Error == nil && ack.Stream == "") {
		return 0, fmt.Errorf("not an acknowledgement: %w", ErrUncertain)
	}
	if ack.Error != nil {
		return 0, ack.Error
	}
	return ack.Seq, nil
}

// Send seals payload in env and publishes it.
func (c *Conn) Send(ctx context.Context, subj string, env *amendsv1.Envelope, payload proto.Message, opts ...PublishOption) (uint64, error) {
	data, err := envelope.Seal(env, payload)
	if err != nil {
		return 0, fmt.Errorf("send to %s: %w", subj, err)
	}
	return c.Publish(ctx, subj, data, opts...)
}

// CancelSchedule removes the schedule on a timer subject, if there is one. All
// cancellations share one subject of which the stream keeps the last message,
// so a cancelled timer leaves nothing behind.
func (c *Conn) CancelSchedule(ctx context.Context, timerSubject string) error {
	_, err := c.Publish(ctx, subject.Timer(subject.None, subject.None), nil, PublishOption{
		name: headerScheduler, value: timerSubject,
		name2: headerScheduleNext, value2: "purge",
	})
	return err
}
