package deliveries

import "time"

// Times are the waits of an outbox, for tests to shorten.
type Times struct {
	Follow, Lease, Probe, Failing, Rewind time.Duration
	Delay                                 func(id string, failed int) (time.Duration, bool)
}

// Hurry gives an outbox shorter waits.
func (o *Outbox) Hurry(t Times) {
	o.times = times{follow: t.Follow, lease: t.Lease, probe: t.Probe, failing: t.Failing, rewind: t.Rewind, delay: t.Delay}
}

// Queue is the queue of due cases.
type Queue = queue

// NewQueue gives an empty one.
var NewQueue = newQueue

// Set and the others let tests look at it.
func (q *queue) Set(caseID string, at time.Time)                    { q.set(caseID, at) }
func (q *queue) Remove(caseID string)                               { q.remove(caseID) }
func (q *queue) Pop(now time.Time) (caseID string, _ time.Duration) { return q.pop(now) }
func (q *queue) Room() bool                                         { return q.room() }

// MaxQueue bounds it.
const MaxQueue = maxQueue
