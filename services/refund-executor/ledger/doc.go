// Package ledger is the pure core of the refund executor: what one order's
// effect entry may become, decided from the entry, the order as the provider
// showed it a moment ago, and the action. It has no I/O and no clock; the
// executor makes each new entry durable by compare-and-set before it acts.
//
// Invariants, under any schedule of crashes, duplicates, delays and replays:
//
//   - MONEY-1: a key has one intent, and an intent one set of parameters.
//     Intents that may have made a refund, and refunds of the provider that
//     are nobody's, never exceed a capture.
//
//   - MONEY-2: an outcome needs an intent; an approval is spent by one action.
//
//   - MONEY-4: the order stays paid once, unless people approved a kind of
//     refund that goes further.
//
//   - An intent is released only on proof that nothing was done. Each call is
//     numbered in the entry before it starts; while more than one may be open,
//     a refusal or a failed send of one of them leaves the intent in doubt.
//
//   - A tombstone and a live intent of one key never stand together: whichever
//     was written first decides.
//
//   - That a refund does not exist is believed only of a complete reading that
//     began when no call could be under way any more, by the broker's clock and
//     from when the broker stored the intent; a refund is the outcome of one
//     intent.
//
//   - What a person settled not to exist is over: no delivery of that action
//     begins it, only a newer action may.
//
//   - A status that was read moves on; what a webhook said moves nothing.
//
// A provider's refund is matched to an intent by reference, which is the
// idempotency key, or because a custodian said so; an equal amount made by hand
// counts as a refund of its own and is a person's matter while an intent for as
// much is in doubt.
//
// Functions return a new entry and never change the one they are given. What
// may not be done is a *Refusal with a reason code and the effect class that
// answers the task.
package ledger
