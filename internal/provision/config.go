package provision

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amends-dev/amends/internal/roles"
)

const (
	// maxMessage is above the largest envelope (256 KiB), so that a receiver
	// sees one that is too large and can say so.
	maxMessage = 512 << 10
	// maxDeadLetter holds such a message whole.
	maxDeadLetter = 640 << 10
	// duplicates is the shortest window the broker allows: nothing here relies
	// on it, and a long one costs memory per message.
	duplicates = 100 * time.Millisecond
)

// Options say what the manifest does not.
type Options struct {
	// Replicas of every stream; 0 means 1.
	Replicas int
	// NewStreams lets Apply create synced streams beside existing ones, for an
	// upgrade that adds one.
	NewStreams bool
}

func (o Options) replicas() int { return max(o.Replicas, 1) }

// streamConfig is what a stream of the manifest must look like.
func streamConfig(s roles.Stream, o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              s.Name,
		Subjects:          s.Subjects,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxAge:            s.MaxAge,
		MaxMsgsPerSubject: -1,
		MaxMsgSize:        maxMessage,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		Duplicates:        duplicates,
		DenyDelete:        s.DenyDelete,
		DenyPurge:         s.DenyPurge,
		AllowDirect:       true,
		AllowMsgSchedules: s.Schedules,
		AllowRollup:       s.Schedules, // the broker turns it on with schedules
	}
	if s.MaxMessagesPerSubject > 0 {
		c.MaxMsgsPerSubject = s.MaxMessagesPerSubject
	}
	if s.Name == roles.StreamDeadLetters {
		c.MaxMsgSize = maxDeadLetter
	}
	if s.RepublishTo != "" {
		c.RePublish = &jetstream.RePublish{Source: ">", Destination: s.RepublishTo + ">"}
	}
	if s.Class == roles.Recomputable {
		switch {
		case o.replicas() == 1:
			c.PersistMode = jetstream.AsyncPersistMode
		case !s.AlwaysFile: // asynchronous persistence is refused with replicas
			c.Storage = jetstream.MemoryStorage
		}
	}
	return c
}

// consumerConfig is what a consumer of the manifest must look like. Deliveries
// are unlimited at the broker: the bus counts them and writes a dead letter
// before it ends a message.
func consumerConfig(c roles.Consumer) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       c.Name,
		Name:          c.Name,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.AckWait,
		MaxDeliver:    -1,
		FilterSubject: c.Filter,
		MaxAckPending: c.MaxAckPending,
	}
}
