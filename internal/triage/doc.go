// Package triage reads what a customer's message asks for and what it names,
// and concludes what the desk does about it. It is pure: no I/O, no clock.
//
// It works in two steps, because between them the caller asks the payments
// side whose order a reference is. Read takes the text apart; Conclude joins
// the reading with the references that were confirmed as the caller's own.
//
// Invariants:
//   - An order is only ever one that was named and confirmed. A number is
//     never corrected, completed or guessed.
//   - An unknown order and an order of somebody else give the same result: all
//     that Conclude learns of a reference is whether it is the caller's.
//   - Where a person may read a number differently from its bytes, the reading
//     holds no reference and the customer is asked.
//   - A text by which nothing was paid twice, or nothing is to be paid back yet,
//     is never supported, whatever else it says: a person reads it, or the
//     customer is asked for the order.
//   - A customer is never asked for an order that is confirmed.
//   - Amounts, claims and flags are statements for the record; none of them
//     decides about money. Instructions in a text are flagged, never followed.
//
// A text that is not understood is asked about; nothing here fails.
package triage
