package roles

import "time"

// Service names one deployable; it is also the sender token of its subjects.
type Service string

// The services of the desk.
const (
	Gateway             Service = "gateway"
	Orchestrator        Service = "orchestrator"
	PaymentInvestigator Service = "payment-investigator"
	PolicySpecialist    Service = "policy-specialist"
	Composer            Service = "composer"
	Verifier            Service = "verifier"
	RefundExecutor      Service = "refund-executor"
	Console             Service = "console"
)

// Class says what a stream's loss would cost.
type Class string

const (
	// Synced streams are on disk before the acknowledgement.
	Synced Class = "synced"
	// Recomputable streams hold what the newest record still wants; it can
	// always be sent again, so a loss costs time and never a case.
	Recomputable Class = "recomputable"
)

// Stream is one stream and its settings.
type Stream struct {
	Name     string
	Subjects []string
	Class    Class
	// MaxAge of 0 keeps messages for ever.
	MaxAge                time.Duration
	DenyDelete            bool
	DenyPurge             bool
	MaxMessagesPerSubject int64
	// Schedules allows scheduled messages; it also allows roll-up, so such
	// a stream has exactly one writer.
	Schedules bool
	// RepublishTo is the subject prefix for live copies, or empty.
	RepublishTo string
	// AlwaysFile keeps file storage also with replicas, where recomputable
	// streams otherwise are in memory.
	AlwaysFile bool
	Writers    []Service
}

// Consumer is one durable pull consumer; exactly one service may pull it.
type Consumer struct {
	Name    string
	Stream  string
	Filter  string
	Service Service
	AckWait time.Duration
	// Backoff is the delay before each redelivery; when it is used up the
	// message becomes a dead letter.
	Backoff       []time.Duration
	MaxAckPending int
	// Resettable lets its service rewind it, where what follows from a message
	// may be lost without the message.
	Resettable bool
}

// MaxDeliveries is how often a message is handed out before its dead letter.
func (c Consumer) MaxDeliveries() int { return len(c.Backoff) + 1 }

// Role is everything one service may do.
type Role struct {
	Service Service
	// Owner is the team that answers for it.
	Owner string
	// Publishes are the subjects (with wildcards) it may publish to.
	Publishes []string
	// LeaderReads are streams it may read by subject at the stream's leader.
	LeaderReads []string
	// DirectReads are stream and subject filter pairs for direct get, which
	// may be stale.
	DirectReads []DirectRead
	// Live are republished subjects it may subscribe to.
	Live []string
	// Watches are consumers of others whose backlog it may ask for, and
	// nothing else of them.
	Watches []string
	// Tools it may call, with the prefix of the call ids they record.
	Tools      []string
	CallPrefix string
	// Fields of the case record it authors.
	Fields []string
	// Secrets it is given, by name.
	Secrets []string
	// Peers it may open connections to, besides the broker.
	Peers []string
}

// DirectRead grants direct gets of one stream under one subject filter.
type DirectRead struct{ Stream, Filter string }

// Manifest is the whole of it.
type Manifest struct {
	Streams   []Stream
	Consumers []Consumer
	Roles     []Role
}

// Role gives the role of a service.
func (m Manifest) Role(s Service) (Role, bool) {
	for _, r := range m.Roles {
		if r.Service == s {
			return r, true
		}
	}
	return Role{}, false
}

// Stream gives a stream by name.
func (m Manifest) Stream(name string) (Stream, bool) {
	for _, s := range m.Streams {
		if s.Name == name {
			return s, true
		}
	}
	return Stream{}, false
}

// Consumer gives a consumer by name.
func (m Manifest) Consumer(name string) (Consumer, bool) {
	for _, c := range m.Consumers {
		if c.Name == name {
			return c, true
		}
	}
	return Consumer{}, false
}

// ConsumersOf gives the consumers a service may pull.
func (m Manifest) ConsumersOf(s Service) []Consumer {
	var out []Consumer
	for _, c := range m.Consumers {
		if c.Service == s {
			out = append(out, c)
		}
	}
	return out
}
