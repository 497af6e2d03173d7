package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amends-dev/amends/internal/subject"
)

// Last reads the last message of subj at the stream's leader: what was
// acknowledged before is seen.
func (c *Conn) Last(ctx context.Context, stream, subj string) (Stored, error) {
	return c.get(ctx, stream, subj, map[string]any{"last_by_subj": subj})
}

// NextAfter reads, at the stream's leader, the first message after seq whose
// subject matches filter.
func (c *Conn) NextAfter(ctx context.Context, stream, filter string, seq uint64) (Stored, error) {
	return c.get(ctx, stream, filter, map[string]any{"seq": seq + 1, "next_by_subj": filter})
}

func (c *Conn) get(ctx context.Context, stream, subj string, req any) (Stored, error) {
	var resp struct {
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Time    time.Time `json:"time"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
		} `json:"message"`
		Error *APIError `json:"error"`
	}
	if err := c.api(ctx, "STREAM.MSG.GET."+stream, req, &resp); err != nil {
		return Stored{}, fmt.Errorf("read %s of %s: %w", subj, stream, err)
	}
	switch {
	case resp.Error != nil:
		return Stored{}, fmt.Errorf("read %s of %s: %w", subj, stream, resp.Error)
	case resp.Message == nil:
		return Stored{}, fmt.Errorf("read %s of %s: empty answer: %w", subj, stream, ErrUncertain)
	}
	m := resp.Message
	out := Stored{Subject: m.Subject, Seq: m.Seq, Time: c.clock.FromBroker(m.Time), Data: m.Data}
	if len(m.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(m.Header)
		if err != nil {
			return Stored{}, fmt.Errorf("read %s of %s: headers: %w", subj, stream, err)
		}
		out.Header = h
	}
	return out, nil
}

// LastDirect reads the last message of subj from any replica; it may be stale.
func (c *Conn) LastDirect(ctx context.Context, stream, subj string) (Stored, error) {
	m, err := c.request(ctx, c.cfg.APIPrefix+".DIRECT.GET."+stream+"."+subj, nil, nil, true)
	if err != nil {
		return Stored{}, fmt.Errorf("read %s of %s: %w", subj, stream, err)
	}
	switch status := m.Header.Get("Status"); status {
	case "":
	case "404":
		return Stored{}, fmt.Errorf("read %s of %s: %w", subj, stream, ErrNotFound)
	default:
		return Stored{}, fmt.Errorf("read %s of %s: status %s %s: %w", subj, stream, status, m.Header.Get("Description"), ErrUnavailable)
	}
	seq, err := strconv.ParseUint(m.Header.Get(headerSequence), 10, 64)
	if err != nil {
		return Stored{}, fmt.Errorf("read %s of %s: sequence: %w", subj, stream, err)
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
	if err != nil {
		return Stored{}, fmt.Errorf("read %s of %s: time: %w", subj, stream, err)
	}
	return Stored{Subject: m.Header.Get(headerSubject), Seq: seq, Time: c.clock.FromBroker(at), Header: m.Header, Data: m.Data}, nil
}

// ResetConsumer rewinds a consumer of this service that the manifest makes
// resettable, so that it hands out the messages from seq on again.
func (c *Conn) ResetConsumer(ctx context.Context, consumer string, seq uint64) error {
	spec, ok := c.cfg.Manifest.Consumer(consumer)
	if !ok {
		return fmt.Errorf("reset consumer %s: the manifest has none of that name", consumer)
	}
	var resp struct {
		Error *APIError `json:"error"`
	}
	err := c.api(ctx, "CONSUMER.RESET."+spec.Stream+"."+consumer, map[string]uint64{"seq": seq}, &resp)
	if err == nil && resp.Error != nil {
		err = resp.Error
	}
	if err != nil {
		return fmt.Errorf("reset consumer %s: %w", consumer, err)
	}
	return nil
}

// Backlog is what a consumer has before it.
type Backlog struct {
	// Waiting is how many messages have not been handed out, Open how many
	// have and are not settled.
	Waiting, Open uint64
	// Delivered is the last stream sequence handed out. Up to Settled every
	// message is settled.
	Delivered, Settled uint64
}

// Total is how many messages are not settled.
func (b Backlog) Total() uint64 { return b.Waiting + b.Open }

// Backlog asks for that of one of the service's consumers, or of one it may
// watch.
func (c *Conn) Backlog(ctx context.Context, consumer string) (Backlog, error) {
	spec, ok := c.cfg.Manifest.Consumer(consumer)
	if !ok || spec.Service != c.cfg.Service && !slices.Contains(c.role.Watches, consumer) {
		return Backlog{}, fmt.Errorf("backlog of %s: not for %s to see: %w", consumer, c.cfg.Service, ErrDenied)
	}
	type position struct {
		Stream uint64 `json:"stream_seq"`
	}
	var resp struct {
		Waiting   uint64    `json:"num_pending"`
		Open      uint64    `json:"num_ack_pending"`
		Delivered position  `json:"delivered"`
		Floor     position  `json:"ack_floor"`
		Error     *APIError `json:"error"`
	}
	err := c.api(ctx, "CONSUMER.INFO."+spec.Stream+"."+consumer, struct{}{}, &resp)
	if err == nil && resp.Error != nil {
		err = resp.Error
	}
	if err != nil {
		return Backlog{}, fmt.Errorf("backlog of %s: %w", consumer, err)
	}
	return Backlog{Waiting: resp.Waiting, Open: resp.Open, Delivered: resp.Delivered.Stream, Settled: resp.Floor.Stream}, nil
}

// Time gives the broker's clock, as the desk reads it, by way of one of the
// service's own consumers. It is for inputs that no message brings.
func (c *Conn) Time(ctx context.Context, consumer string) (time.Time, error) {
	spec, ok := c.cfg.Manifest.Consumer(consumer)
	if !ok || spec.Service != c.cfg.Service {
		return time.Time{}, fmt.Errorf("broker's time by %s: not a consumer of %s: %w", consumer, c.cfg.Service, ErrDenied)
	}
	var resp struct {
		At    time.Time `json:"ts"`
		Error *APIError `json:"error"`
	}
	err := c.api(ctx, "CONSUMER.INFO."+spec.Stream+"."+consumer, struct{}{}, &resp)
	switch {
	case err == nil && resp.Error != nil:
		err = resp.Error
	case err == nil && resp.At.IsZero():
		err = ErrUncertain
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("broker's time by %s: %w", consumer, err)
	}
	return c.clock.FromBroker(resp.At), nil
}

// verify asks for every stream and consumer the service reads or watches.
func (c *Conn) verify(ctx context.Context) error {
	for _, spec := range c.cfg.Manifest.ConsumersOf(c.cfg.Service) {
		if err := c.exists(ctx, "CONSUMER.INFO."+spec.Stream+"."+spec.Name, struct{}{}); err != nil {
			return fmt.Errorf("consumer %s: %w", spec.Name, err)
		}
	}
	for _, name := range c.role.Watches {
		if _, err := c.Backlog(ctx, name); err != nil {
			return err
		}
	}
	for _, stream := range c.role.LeaderReads {
		if err := c.exists(ctx, "STREAM.MSG.GET."+stream, map[string]uint64{"seq": 1}); err != nil {
			return fmt.Errorf("stream %s: %w", stream, err)
		}
	}
	for _, d := range c.role.DirectReads {
		_, err := c.LastDirect(ctx, d.Stream, strings.ReplaceAll(d.Filter, "*", subject.None))
		if errors.Is(err, errNoResponder) {
			err = fmt.Errorf("%w: %w", ErrMissing, err)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("stream %s: %w", d.Stream, err)
		}
	}
	return nil
}

func (c *Conn) exists(ctx context.Context, call string, req any) error {
	var resp struct {
		Error *APIError `json:"error"`
	}
	if err := c.api(ctx, call, req, &resp); err != nil {
		return err
	}
	if resp.Error != nil && !errors.Is(resp.Error, ErrNotFound) {
		return resp.Error
	}
	return nil
}

func (c *Conn) api(ctx context.Context, call string, req, resp any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	m, err := c.request(ctx, c.cfg.APIPrefix+"."+call, nil, body, true)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	return nil
}
