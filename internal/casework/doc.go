// Package casework is the case core: the record, the state table, the decision
// function and what a record wants sent.
//
// Decide is pure: (record, input, limits) → the next commit. No I/O, no clock,
// no randomness: the time is the broker's timestamp of the input, look-ups are
// made by the shell before deciding and travel inside the input. So applying
// the inputs of a case's log in order gives its records again (STATE-1).
//
// Table is the state machine as data: from, event, guard, to, effects. Decide
// walks it; the diagram in docs is generated from it. Nothing else assigns
// a state.
//
// Outgoing is the one function that says what the newest record still wants in
// the world: open task attempts, the customer's view, the next wake-up. Every
// send and resend (after a commit, on redelivery, at start, after a broker
// restart) goes through it, so nothing recomputable can be lost (LOSS-2).
//
// What is said about money is asked back. A provider's event about a refund the
// case made, and a custodian's answer to what is in doubt, are handed to the
// executor; only what it read moves the case, a closed one too (TRUTH-2, MONEY-3).
// What it says counts from whichever attempt it comes and however late, and stays
// in the record, with its action, whatever other action comes after.
//
// A finding makes a case for people once. One that is about no case opens one
// without customer, channel or reply; one that comes while the desk works is with
// people before the case ends, unless a person has decided with it in the packet.
//
// A finding that a refund of the case failed is a hint, like a webhook's: the
// executor is asked, and what it reads brings the case to people with a word to
// the customer. It is never ended in silence unless a reading contradicts it.
//
// People can always end a case: what is in doubt can be asked about again, and
// settled, as often as it takes, and a record that is full takes so many of their
// decisions more, and the work these bring (LIVE-1).
//
// Every input is recorded by sender and message id, applied or refused with
// a reason code; an input already in the record changes nothing (LOSS-1), nor
// does a finding that the record holds (ErrNothingNew).
//
//go:generate go test -run TestStateMachineDocument -update .
package casework
