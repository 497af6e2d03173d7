// Package executor is the refund executor: the only service that moves money.
//
// It consumes refund-executor-tasks (task.assign: execute or cancel one action,
// confirm what became of its refunds, settle what is in doubt), reads CONTROL
// and its own EFFECTS at the stream leaders, reads the order and creates refunds
// at the payments provider with its own credential, writes
// effect.{tenant}.{order} and effect.{tenant}.cap by compare-and-set, and
// answers effect_result or task.error to the orchestrator. What it refuses on
// its own account it also writes to AUDIT. Beside the tasks it runs package
// sweep, which compares the provider with the ledger.
//
// Order of work, for one action:
//
//	stop switch → cancel → approval → whole order read again → own caps
//	→ INTENT durable → stop once more → call with the key and the stored bytes
//	→ outcome durable → read back → result → acknowledge
//
// The provider and the records are behind seams (packages provider and
// effectstore), and time passes through a dependency, so the same code runs on
// the broker and in a simulation.
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
//     of the intent has passed, nor while a stop is set, nor when the look at
//     the stop was begun more than a second ago (MONEY-2).
//   - What an intent rests on was judged at most a call window before it was
//     stored: a process that stood still judges again.
//   - Cancel and execute of one key meet in one compare-and-set: no tombstone
//     can be written over a live intent and no intent over a tombstone, so
//     after the intent only the stop can still forbid the call.
//   - A lost race, or a write whose acknowledgement is lost, is decided again
//     from the leader's copy. No side effect is inside that loop.
//   - ACKNOWLEDGED is answered only with the provider's refund id, after the
//     outcome is durable (TRUTH-2).
//
// Recovery of a refund in doubt (an intent without an outcome, or with an unknown
// one). While the provider knows the key, no stop is set and the order would
// carry it, the same key and bytes are sent again. Otherwise, and on every
// cancel, it is looked up in a complete reading of the order, which nothing
// forbids:
//
//	our reference, payment and amount   that is the acknowledgement
//	not listed, and no call can be      NO_EFFECT, proven_absent: the key may be
//	under way any more                  begun again, under the checks of then; a
//	                                    cancel withdraws it
//	as much on that payment, nobody's   UNDECIDABLE, equal_refund_elsewhere
//	a contradiction                     UNDECIDABLE, with its reason
//	not provable yet                    HELD while stopped, else UNDECIDABLE:
//	                                    asked again later
//
// No call can be under way when the task is later, by the broker's clock, than
// both call_before and the longest call window after the entry was stored, with
// the call's time-out and a margin on top. The first is what a process with
// a clock of its own wrote; the second holds whatever that clock showed, for the
// window is measured from before the write by how long it lasts.
//
// A custodian's signed answer settles a doubt where it can be so (package
// ledger); the signature is checked against the executor's own registry, and
// a wrong answer leaves the doubt as it was. That there is no refund is final
// for the action: an older delivery of it begins nothing. Where nothing was ever
// begun that answer withdraws the keys. Confirm and settle call nothing.
//
// A cancel withdraws every key of which nothing was done, also when others of the
// action were made, refused or are in doubt; what is in doubt is then never sent
// again, only looked up. An action that was made in part and withdrawn for the
// rest is answered REFUSED, withdrawn_in_part, with both outcomes: people end it.
// Confirm and cancel look up what is thought to have done nothing, too.
//
// The approver registry is read again whenever a signature is judged: a key that
// was added or revoked counts from the next intent on. Without a valid registry
// nothing is paid and nothing settled; the tasks are tried again, and the log and
// amends_executor_registry_failures say so.
//
// Failure behaviour. What cannot be read or written is tried again by
// redelivery; with no delivery left it is a dead letter, and if money may have
// moved the answer is EVIDENCE_GAP. A redelivered task whose outcome is
// recorded is answered again without acting. A process that stood still between
// the permission to call and the sending sends nothing: the call's last moment
// travels into the request. A process whose clock is behind the broker's, as it
// is when the entry is read, by more than the margin begins nothing, and what
// expires is judged by whichever of the two is later. A refund that reads back
// differently, or is not there, keeps the case open. A stop that cannot be read
// forbids the call.
//
// Cost of an approved refund: two synced writes (intent, outcome); at the
// provider one order reading, one creation, one reading back. A refund that
// nobody approved costs one synced write more, its reservation from the caps,
// and a refusal costs one, its audit event.
package executor
