package bus

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/envelope"
	"github.com/amends-dev/amends/internal/subject"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Stored is a message as a stream holds it. Time is the broker's clock, as the
// desk reads it.
type Stored struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Header  map[string][]string
	Data    []byte
}

// Message is a delivery whose envelope has been opened.
type Message struct {
	Envelope *amendsv1.Envelope
	Payload  proto.Message
	Parts    subject.Parts
	Stored
	Stream string
	// Delivered counts the deliveries of this message, this one included.
	Delivered int
	// LastDelivery: an error now becomes a dead letter.
	LastDelivery bool
}

// Raw is a delivery that is not an envelope, e.g. a case commit.
type Raw struct {
	Stored
	// Pending is how many messages the consumer has not yet handed out.
	Pending uint64
}

// Handler handles one message. Its outcome settles the message:
//
//	nil                  acknowledged
//	Retry, other errors  handed out again after the consumer's backoff; on the
//	                     last delivery a dead letter, deliveries_exhausted
//	Reject               dead letter
//	Drop                 acknowledged, and counted and logged with its reason
//
// The context ends at the per-message timeout. A handler that does not return
// then is abandoned: its message is settled as a Retry and whatever it returns
// later is ignored.
type Handler func(ctx context.Context, m *Message) error

// ConsumeOptions tune one Consume.
type ConsumeOptions struct {
	// Workers handle messages in parallel, also those of one case. Default 8.
	Workers int
	// Timeout bounds one handling; default a third of the consumer's
	// AckWait. A longer one is kept alive by heartbeats.
	Timeout time.Duration
	// OnReject is called before a message that envelope.Open refused becomes
	// a dead letter, or is dropped because its deadline has passed, so that
	// a specialist can answer its sender. Envelope and
	// Payload are what could be decoded and may be nil.
	OnReject func(ctx context.Context, m *Message, rej *envelope.Rejection)
	// OnAcked is called when the broker has a handled message's acknowledgement,
	// for tests that end the process there.
	OnAcked func(ctx context.Context, m *Message)
}

// Reasons the bus itself gives dead letters.
const (
	// ReasonDeliveriesExhausted: every allowed delivery failed or hung.
	ReasonDeliveriesExhausted = "deliveries_exhausted"
	// ReasonCaseBacklog: the case already holds its share of the consumer's
	// outstanding messages in delayed retries.
	ReasonCaseBacklog = "case_backlog"
	reasonRejected    = "rejected" // by a handler that gave none
)

type outcomeKind int

const (
	outcomeRetry outcomeKind = iota
	outcomeReject
	outcomeDrop
)

type outcome struct {
	kind   outcomeKind
	reason string
	err    error
}

func (o *outcome) Error() string {
	if o.err == nil {
		return o.reason
	}
	if o.reason == "" {
		return o.err.Error()
	}
	return o.reason + ": " + o.err.Error()
}

func (o *outcome) Unwrap() error { return o.err }

// Retry asks for another delivery after the consumer's backoff.
func Retry(err error) error { return &outcome{kind: outcomeRetry, err: err} }

// Reject says that the message can never be handled; reason is a reason code.
func Reject(reason string, err error) error {
	if reason == "" {
		reason = reasonRejected
	}
	return &outcome{kind: outcomeReject, reason: reason, err: err}
}

// Drop says that the message needs nothing; reason is a reason code.
func Drop(reason string) error { return &outcome{kind: outcomeDrop, reason: reason} }

// classify gives the outcome of a handler's error; an error nobody classified
// is a retry.
func classify(err error) *outcome {
	if o, ok := errors.AsType[*outcome](err); ok {
		return o
	}
	return &outcome{kind: outcomeRetry, err: err}
}
