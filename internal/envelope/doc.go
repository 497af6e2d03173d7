// Package envelope closes and opens the one message form of the desk.
//
// A receiver trusts what the broker enforces: the subject and the broker's
// time of the message. Open therefore derives the sender from the subject and
// checks, in this order, size, decodability, subject, sender, type and version,
// schema, deadline. The first failure ends the check and gives its own reason
// code. The checks that need a record (duplicate, open task, lease, budget)
// come after it, with whoever holds that record.
//
// Invariants: what Seal accepts, Open accepts on the subject the envelope
// belongs to, as long as its deadline has not passed. A message whose type,
// version, enum value or time is not known is refused and never guessed. Open
// never panics, whatever the bytes.
//
// There is no I/O and no clock here.
package envelope
