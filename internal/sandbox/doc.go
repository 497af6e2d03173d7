// Package sandbox is the payments sandbox: a real HTTP service with its own
// durable file that stands in for the payments provider in development, in
// tests and in load runs. It knows orders, captures, refunds and disputes, and
// keeps what it is told verbatim, contradictions and unknown statuses included.
//
// It guarantees, under any interleaving of requests and any kill:
//
//   - refunds it created that are not failed or canceled never exceed their
//     capture, and one idempotency key of one API key and tenant makes at most
//     one refund within the key window, unless Config.NoKeys or a fault takes
//     the keys away;
//   - an answer is sent only after what it says is in the journal, and with
//     Config.Sync on the disk; a refund that was answered is there after a restart;
//   - an order that is unknown and an order of another customer or tenant get
//     byte-equal answers;
//   - an API key reaches the routes of its scope and no others;
//   - a webhook tells of a change that is durable, and only of one at an order
//     that was there before.
//
// The journal is append-only, one JSON entry a line, replayed at start. Without
// Sync an entry is handed to the operating system before the answer: it survives
// the death of the process, not a power failure. With Sync one disk sync serves
// all entries that wait for it. A last line that was cut off is dropped (its
// answer was never sent); any other damage refuses the start. When the journal
// cannot be written, every later change answers 503 until a restart; a request
// whose sync failed answers 503 too, and its outcome is unknown to the caller.
//
// Webhooks are sent a bounded number of times from memory: they may be lost,
// doubled, late and in any order, as a provider's are. Config.Events says where
// to.
//
// Faults let it fail on purpose, by rules that the admin API switches. All are
// put in at one place, around the routes: before anything is done, and when
// what was asked for is done and durable; those of webhooks where webhooks are
// sent. They change what callers see and when, and may take idempotency keys
// away; they never touch what the journal holds, nor the admin routes. They are
// in memory and end with the process; requests they hold at the end are not
// answered, and refunds that were to fail later stay as they are.
//
// A key is bound by the refund it made, not by a refusal: a request refused with
// 4xx may be corrected and sent again under the same key.
package sandbox
