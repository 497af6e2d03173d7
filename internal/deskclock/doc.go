// Package deskclock gives a desk a time of its own: it stands at a moment
// somebody names until it is let run, then runs as fast as the machine's clock,
// and can be moved ahead.
// The case file runner uses it, so that a case lives at its own date and
// "31 minutes later" takes no time.
//
// The broker keeps the machine's time. A Clock translates at the edge: FromBroker
// for what the broker stamped, ToBroker for what it is to do at a moment.
//
// Invariants:
//   - Time never runs backwards: Now and FromBroker are monotone.
//   - A message keeps its time. What was stamped before an advance is read the
//     same after it, so a log replays to the same records.
//   - FromBroker(ToBroker(t)) is t for every moment the desk's clock passes
//     through, and the end of the leap for one that was leapt over.
//
// A Clock is safe for concurrent use. It knows nothing of timers: whoever
// advances it arms again what the broker has scheduled.
package deskclock
