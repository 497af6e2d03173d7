package allinone

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
)

// Counts is what the broker has stored so far.
type Counts struct {
	// Synced and Persisted count messages ever stored: in the synced streams,
	// and in all of them.
	Synced, Persisted uint64
	// Bytes is what all streams hold now.
	Bytes uint64
}

// Minus gives the difference to an earlier count. Bytes can shrink: streams
// that keep one message a subject hold only the newest.
func (c Counts) Minus(before Counts) Counts {
	return Counts{c.Synced - before.Synced, c.Persisted - before.Persisted, c.Bytes - min(c.Bytes, before.Bytes)}
}

// Counts asks the broker. It needs Options.Operator.
func (d *Desk) Counts(ctx context.Context) (Counts, error) {
	js, done, err := d.Inspect()
	if err != nil {
		return Counts{}, err
	}
	defer done()
	var c Counts
	for _, s := range roles.Desk().Streams {
		stream, err := js.Stream(ctx, s.Name)
		if err != nil {
			return Counts{}, fmt.Errorf("count stream %s: %w", s.Name, err)
		}
		state := stream.CachedInfo().State
		c.Persisted += state.LastSeq
		c.Bytes += state.Bytes
		if s.Class == roles.Synced {
			c.Synced += state.LastSeq
		}
	}
	return c, nil
}

// Inspect gives a client with every right in the streams' account, for tests
// and counters. It needs Options.Operator; no service ever has it.
func (d *Desk) Inspect() (_ jetstream.JetStream, done func(), err error) {
	seed := d.broker.Seed(broker.Operator)
	if seed == nil {
		return nil, nil, errors.New("inspect: the desk was started without an operator")
	}
	nc, err := connectAs(d.broker.URL(), broker.Operator, seed)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("inspect: %w", err)
	}
	return js, nc.Close, nil
}

func connectAs(url string, id roles.Service, seed []byte) (*nats.Conn, error) {
	kp, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, fmt.Errorf("read the seed of %s: %w", id, err)
	}
	key, err := kp.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("read the seed of %s: %w", id, err)
	}
	nc, err := nats.Connect(url, nats.Name(string(id)), nats.Nkey(key, kp.Sign), nats.CustomInboxPrefix(bus.InboxPrefix(id)))
	if err != nil {
		return nil, fmt.Errorf("connect as %s: %w", id, err)
	}
	return nc, nil
}
