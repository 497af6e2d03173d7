// Package executor is the refund executor: the only service that moves money.
//
// It consumes refund-executor-tasks (task.assign: execute or cancel one
// action), reads CONTROL and its own EFFECTS at the stream leaders, reads the
// order and creates refunds at the payments provider with its own credential,
// writes effect.{tenant}.{order} and effect.{tenant}.cap by compare-and-set,
// and answers effect_result or task.error to the orchestrator. What it refuses
// on its own account it also writes to AUDIT.
//
// Order of work, for one action:
//
//	stop switch → cancel → approval → whole order read again → own caps
//	→ INTENT durable → stop once more → call with the key and the stored bytes
//	→ outcome durable → read back → result → acknowledge
//
// The decisions are in package ledger and are pure; here is only the order of
// things. An approval counts by its signature, checked against the executor's
// own registry file, and whether one is needed follows from the executor's own
// limits and the order it just read: neither the orchestrator nor the console
// is believed.
//
// Invariants:
//
//   - Nothing is called before its intent is durable, nor when the call window
//     of the intent has passed, nor while a stop is set (MONEY-2).
//   - Cancel and execute of one key meet in one compare-and-set: no tombstone
//     can be written over a live intent and no intent over a tombstone, so
//     after the intent only the stop can still forbid the call.
//   - A lost race, or a write whose acknowledgement is lost, is decided again
//     from the leader's copy. No side effect is inside that loop.
//   - ACKNOWLEDGED is answered only with the provider's refund id, after the
//     outcome is durable (TRUTH-2).
//
// Failure behaviour. What cannot be read or written is tried again by
// redelivery; with no delivery left it is a dead letter, and if money may have
// moved the answer is EVIDENCE_GAP. A redelivered task whose outcome is
// recorded is answered again without acting. An intent without an outcome is
// sent again with the same key and bytes while the provider still knows the
// key and the order would still carry it; past that the answer is UNDECIDABLE
// and people reconcile. A stop that cannot be read forbids the call.
//
// Cost of an approved refund: two synced writes (intent, outcome); at the
// provider one order reading, one creation, one reading back. A refund that
// nobody approved costs one synced write more, its reservation from the caps,
// and a refusal costs one, its audit event.
package executor
