// Package reconcile is what the two comparisons of money share: the executor's,
// of the provider with the effect ledger, and the orchestrator's, of the ledger
// with the cases (MONEY-3). It says when a run is due, keeps its report, and
// names the message that makes a case of a finding.
//
// A run is due by the clock, every so often for each configured tenant, and when
// the console asks for one on control.reconcile.{tenant}. Nothing of it is kept
// but its report: a run that was cut off is done again as a whole, and several
// replicas may do the same one, because a finding has one name, and its message
// one id, whoever finds it and however often.
//
// Invariants:
//
//   - A report takes nothing back. It is written by compare-and-set over what is
//     there of the same run and says what either says, so the replica that found
//     nothing any more does not take out what the first one found.
//   - A report without finished_at is of a run under way, or of one that was cut
//     off: what was found before its cause was recorded is in it.
//   - Ages are judged by the broker's clock. When the process's own differs from
//     it by more than the grace the report is incomplete.
//
// Failure behaviour. A report that holds no reason for being incomplete has
// looked at everything in its window; any read that failed, any bound that was
// met, makes it incomplete, and then it is no proof that all agrees. A report
// that cannot be written is tried a few times and logged: the next run writes
// another. A request that is older than RequestAge when it is first seen is not
// carried out; its report says so.
package reconcile
