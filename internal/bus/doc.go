// Package bus is the only place that touches JetStream for messages: connect,
// publish, read, consume, settle, dead letter, trace.
//
// Guarantees:
//   - A publish that returned a sequence is stored. ErrConflict, ErrDenied and
//     ErrUnavailable mean that it is not. ErrUncertain means that nobody knows:
//     it is never sent again here, the caller asks the stream's leader.
//   - Every consumed message ends acknowledged, dropped with a counted reason
//     (its handler's, or that its deadline had passed when it was stored), or as a dead letter that the broker acknowledged before the message was
//     settled (LOSS-2). When no dead letter can be written the message stays.
//     A lost settlement may write the same dead letter twice; the original's
//     stream and sequence tell.
//   - Deliveries are counted by the broker, not by errors: a handler that
//     hangs, panics or kills its process uses them up like one that fails.
//   - A failing case delays itself only. Retries wait at the broker, and one
//     case may hold a bounded part of a consumer's outstanding messages.
//   - What arrives was opened by package envelope in its check order; a handler
//     never sees a message whose sender, type, schema or deadline is wrong.
//
// Handlers must be idempotent: a message whose acknowledgement was lost comes
// again, and a stale acknowledgement is accepted, so it fences nothing.
//
// The connection reconnects for ever. What was in flight at a disconnect ends
// as ErrUncertain at once; what starts while disconnected waits, bounded, and
// ends as ErrUnavailable. A publish that the broker's permissions refuse ends
// as ErrDenied, and Ready fails when the manifest grants what was refused.
//
// Logs, metrics and dead-letter listings never carry message content: reason
// codes are the only variable text, and error texts are masked.
package bus
