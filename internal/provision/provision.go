package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/amends-dev/amends/internal/broker"
	"github.com/amends-dev/amends/internal/bus"
	"github.com/amends-dev/amends/internal/roles"
)

// ErrMissing marks a required stream that is not there.
var ErrMissing = errors.New("a required stream is missing")

const callTimeout = 5 * time.Second

// Connect dials the broker with the provisioner's seed. Close the connection
// when done.
func Connect(url string, seed []byte) (*nats.Conn, jetstream.JetStream, error) {
	kp, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, nil, fmt.Errorf("provision: read the seed: %w", err)
	}
	key, err := kp.PublicKey()
	if err != nil {
		return nil, nil, fmt.Errorf("provision: read the seed: %w", err)
	}
	nc, err := nats.Connect(url, nats.Name(string(broker.Provisioner)), nats.Nkey(key, kp.Sign),
		nats.CustomInboxPrefix(bus.InboxPrefix(broker.Provisioner)), nats.Timeout(callTimeout))
	if err != nil {
		return nil, nil, fmt.Errorf("provision: connect: %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(callTimeout))
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("provision: %w", err)
	}
	return nc, js, nil
}

// Apply makes the broker's streams and consumers what the manifest says. It is
// idempotent. It fails with ErrMissing, before it changes anything, when some
// streams exist but a synced one does not, unless o.NewStreams.
func Apply(ctx context.Context, js jetstream.JetStream, m roles.Manifest, o Options) error {
	have, err := names(js.StreamNames(ctx))
	if err != nil {
		return fmt.Errorf("provision: list the streams: %w", err)
	}
	if len(have) > 0 && !o.NewStreams {
		for _, s := range m.Streams {
			if s.Class == roles.Synced && !slices.Contains(have, s.Name) {
				return fmt.Errorf("provision: stream %s: %w", s.Name, ErrMissing)
			}
		}
	}
	for _, s := range m.Streams {
		if _, err := js.CreateOrUpdateStream(ctx, streamConfig(s, o)); err != nil {
			return fmt.Errorf("provision: stream %s: %w", s.Name, err)
		}
	}
	for _, c := range m.Consumers {
		if _, err := js.CreateOrUpdateConsumer(ctx, c.Stream, consumerConfig(c)); err != nil {
			return fmt.Errorf("provision: consumer %s: %w", c.Name, err)
		}
	}
	return nil
}

// Check compares the broker with the manifest and changes nothing. The error
// lists every difference; it is ErrMissing when a required stream is not there.
// Streams and consumers that the manifest does not have are differences too.
func Check(ctx context.Context, js jetstream.JetStream, m roles.Manifest, o Options) error {
	have, err := names(js.StreamNames(ctx))
	if err != nil {
		return fmt.Errorf("provision: list the streams: %w", err)
	}
	var errs []error
	for _, name := range have {
		if _, ok := m.Stream(name); !ok {
			errs = append(errs, fmt.Errorf("stream %s is not in the manifest", name))
		}
	}
	for _, s := range m.Streams {
		if !slices.Contains(have, s.Name) {
			errs = append(errs, fmt.Errorf("stream %s: %w", s.Name, ErrMissing))
			continue
		}
		if err := checkStream(ctx, js, m, s, o); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("provision: the broker is not what the manifest says: %w", err)
	}
	return nil
}

func checkStream(ctx context.Context, js jetstream.JetStream, m roles.Manifest, s roles.Stream, o Options) error {
	stream, err := js.Stream(ctx, s.Name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.Name, err)
	}
	errs := []error{differ("stream "+s.Name, streamFields(streamConfig(s, o)), streamFields(stream.CachedInfo().Config))}
	have, err := names(stream.ConsumerNames(ctx))
	if err != nil {
		return fmt.Errorf("stream %s: list the consumers: %w", s.Name, err)
	}
	for _, name := range have {
		if c, ok := m.Consumer(name); !ok || c.Stream != s.Name {
			errs = append(errs, fmt.Errorf("consumer %s of stream %s is not in the manifest", name, s.Name))
		}
	}
	for _, c := range m.Consumers {
		if c.Stream != s.Name {
			continue
		}
		cons, err := stream.Consumer(ctx, c.Name)
		if err != nil {
			errs = append(errs, fmt.Errorf("consumer %s: %w", c.Name, err))
			continue
		}
		errs = append(errs, differ("consumer "+c.Name, consumerFields(consumerConfig(c)), consumerFields(cons.CachedInfo().Config)))
	}
	return errors.Join(errs...)
}

// field is one setting.
type field struct {
	name  string
	value any
}

func streamFields(c jetstream.StreamConfig) []field {
	republish := ""
	if c.RePublish != nil {
		republish = c.RePublish.Source + " to " + c.RePublish.Destination
	}
	return []field{
		{"subjects", strings.Join(c.Subjects, " ")},
		{"retention", c.Retention},
		{"discard", c.Discard},
		{"storage", c.Storage},
		{"persistence", c.PersistMode},
		{"replicas", c.Replicas},
		{"max age", c.MaxAge},
		{"messages per subject", c.MaxMsgsPerSubject},
		{"message size", c.MaxMsgSize},
		{"messages", c.MaxMsgs},
		{"bytes", c.MaxBytes},
		{"duplicate window", c.Duplicates},
		{"deny delete", c.DenyDelete},
		{"deny purge", c.DenyPurge},
		{"roll-up", c.AllowRollup},
		{"schedules", c.AllowMsgSchedules},
		{"direct get", c.AllowDirect},
		{"atomic batches", c.AllowAtomicPublish},
		{"message ttl", c.AllowMsgTTL},
		{"no acknowledgements", c.NoAck},
		{"sealed", c.Sealed},
		{"republish", republish},
		{"sources", len(c.Sources)},
		{"mirror", c.Mirror != nil},
	}
}

func consumerFields(c jetstream.ConsumerConfig) []field {
	return []field{
		{"filter", c.FilterSubject},
		{"more filters", len(c.FilterSubjects)},
		{"deliver", c.DeliverPolicy},
		{"acknowledgement", c.AckPolicy},
		{"ack wait", c.AckWait},
		{"max deliver", c.MaxDeliver},
		{"max ack pending", c.MaxAckPending},
		{"backoff", c.BackOff},
		{"headers only", c.HeadersOnly},
		{"memory", c.MemoryStorage},
		{"push subject", c.DeliverSubject},
	}
}

func differ(what string, want, got []field) error {
	var errs []error
	for i, w := range want {
		if want, got := fmt.Sprint(w.value), fmt.Sprint(got[i].value); want != got {
			errs = append(errs, fmt.Errorf("%s: %s is %s, want %s", what, w.name, got, want))
		}
	}
	return errors.Join(errs...)
}

// lister is a paged list of the client library.
type lister interface {
	Name() <-chan string
	Err() error
}

func names(l lister) ([]string, error) {
	var out []string
	for name := range l.Name() {
		out = append(out, name)
	}
	if err := l.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
		return nil, err
	}
	return out, nil
}
