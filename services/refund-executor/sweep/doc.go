// Package sweep compares the payments provider with the effect ledger, for each
// tenant by schedule and when it is asked (MONEY-3). It moves no money.
//
// It consumes control.reconcile.{tenant} and EFFECTS at the stream leaders and
// reads the provider with the executor's credential; it emits effect_finding on
// result.refund-executor.{tenant}.{case}, the status a refund has come to on
// effect.{tenant}.{order}, and its report on report.refund-executor.{tenant}.{run}.
//
// A run takes the orders of the ledger and of the provider's list of refunds in
// its window, besides those with something unsettled of any age; reads each
// order whole; and has package ledger balance the books.
//
// Invariants:
//
//   - The provider is read between two equal readings of the ledger's entry, so
//     a refund that is being made is never taken for one that nobody made.
//   - A finding is handed on before the status that gave rise to it is recorded:
//     a crash between the two repeats the finding, which is the same message,
//     and loses none.
//   - It is in the report of the run before that too, so that neither a crash
//     nor another executor, which finds it no more, makes a clean bill of it.
//   - A status is recorded by compare-and-set over the entry that was compared.
//   - A dry run sends no finding and records no status.
//
// Failure behaviour. What cannot be read, and what is beyond a bound, makes the
// report incomplete; the rest is compared all the same. Nothing is kept but an
// index of the ledger, built again from the start after a restart. Two
// executors may do the same run.
package sweep
