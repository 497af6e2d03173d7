package executor

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/bus"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// Step is a place in the handling of one task. Wherever the process dies, the
// same task, delivered or sent again, makes each refund at most once and says
// what became of it (MONEY-1, TRUTH-2).
type Step string

// The places, in the order in which a task passes them. Those inside a send
// stand where the broker has the message and its answer is not looked at.
const (
	// TaskTaken: the task is in hand and nothing is done.
	TaskTaken Step = "task_taken"
	// ReservationSent and ReservationDurable: the part of the caps that nobody
	// approved is booked, its intent is not written.
	ReservationSent    Step = "reservation_sent"
	ReservationDurable Step = "reservation_durable"
	// IntentSent and IntentDurable: the intents are written, nothing is called.
	// From IntentDurable to OutcomeDurable each refund passes on its own.
	IntentSent    Step = "intent_sent"
	IntentDurable Step = "intent_durable"
	// StopLookedAt: nothing forbids the call, which is not made.
	StopLookedAt Step = "stop_looked_at"
	// Called: the provider has answered, or not in time; nothing is stored.
	Called Step = "called"
	// LookedUp: what a reading or a person settled is not yet durable.
	LookedUp Step = "looked_up"
	// OutcomeSent and OutcomeDurable: what became of a refund is written, from
	// a call or a reading, and nobody is told.
	OutcomeSent    Step = "outcome_sent"
	OutcomeDurable Step = "outcome_durable"
	// SightingsSent: what a reading showed of refunds made before is written.
	SightingsSent Step = "sightings_sent"
	// TombstoneSent and TombstoneDurable: the keys are withdrawn.
	TombstoneSent    Step = "tombstone_sent"
	TombstoneDurable Step = "tombstone_durable"
	// ReadBack: the provider has shown what it made, and nobody is told.
	ReadBack Step = "read_back"
	// RefusalSent: the audit record of a refusal is written, the answer is not.
	RefusalSent Step = "refusal_sent"
	// ResultSent: the orchestrator can know, the task is not acknowledged.
	ResultSent Step = "result_sent"
	// Acknowledged: the broker has the task's acknowledgement.
	Acknowledged Step = "acknowledged"
)

// Steps lists them.
func Steps() []Step {
	return []Step{
		TaskTaken, ReservationSent, ReservationDurable, IntentSent, IntentDurable, StopLookedAt, Called, LookedUp, OutcomeSent, OutcomeDurable, SightingsSent,
		TombstoneSent, TombstoneDurable, ReadBack, RefusalSent, ResultSent, Acknowledged,
	}
}

type taskKey struct{}

// withTask has TaskOf give the task that is handled.
func withTask(ctx context.Context, env *amendsv1.Envelope) context.Context {
	return context.WithValue(ctx, taskKey{}, env)
}

// TaskOf gives the task at one of whose places a test stands.
func TaskOf(ctx context.Context) *amendsv1.Envelope {
	env, _ := ctx.Value(taskKey{}).(*amendsv1.Envelope)
	return env
}

// sending has a place inside the next send told. What is sent is sent: an error
// of the test changes nothing there.
func (x *executor) sending(ctx context.Context, s Step, key string) context.Context {
	if !x.watched {
		return ctx
	}
	return bus.WithSent(ctx, func(string) { _ = x.reached(ctx, s, key) })
}

// writing has the sending of the entry that follows from another told.
func (x *executor) writing(ctx context.Context, before, after *amendsv1.EffectEntry) context.Context {
	if !x.watched {
		return ctx
	}
	if s, key := written(before, after); s != "" {
		return x.sending(ctx, s, key)
	}
	return ctx
}

// written says what an entry has that the one before it had not: withdrawn
// keys, intents that begin, anew or once more, an outcome, or sightings, which
// may change an outcome's status.
func written(before, after *amendsv1.EffectEntry) (s Step, key string) {
	if n := len(before.GetTombstones()); len(after.GetTombstones()) > n {
		return TombstoneSent, after.GetTombstones()[n].GetIdempotencyKey()
	}
	if n := len(after.GetSightings()); n > 0 && (len(before.GetSightings()) != n || !proto.Equal(after.GetSightings()[n-1], before.GetSightings()[n-1])) {
		for _, in := range after.GetIntents() { // of one that was begun
			return SightingsSent, in.GetIdempotencyKey()
		}
	}
	had := map[string]*amendsv1.EffectIntent{}
	for _, in := range before.GetIntents() {
		had[in.GetIdempotencyKey()] = in
	}
	for _, in := range after.GetIntents() {
		old := had[in.GetIdempotencyKey()]
		switch {
		case in.GetCalls() != old.GetCalls() || old == nil:
			return IntentSent, in.GetIdempotencyKey()
		case !proto.Equal(in.GetOutcome(), old.GetOutcome()):
			return OutcomeSent, in.GetIdempotencyKey()
		}
	}
	return "", ""
}

// key names a task where it is about its action as a whole.
func (t *task) key() string {
	if len(t.action.GetRefunds()) == 0 {
		return ""
	}
	return t.action.GetRefunds()[0].GetIdempotencyKey()
}
