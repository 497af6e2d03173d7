// Package investigator finds out what happened to the money of one order.
//
// Consumes: task.payment-investigator.*.* (slice payment). Emits:
// payment_evidence, or task.error. Grants: the payments read key with the tools
// payments.list_captures, payments.list_refunds and payments.get_settlement.
//
// Invariants:
//   - Every fact comes from a look-up of this task, with its call id. The three
//     calls are p1, p2 and p3 in every run, though they are made at once.
//   - Evidence is reported as it is. Where listing and settlement disagree the
//     record shows the contradiction (status and flags that do not fit), and
//     nobody here decides which is right.
//   - Evidence is complete only if every look-up was supported. An order that
//     the provider does not know, or a list longer than a record holds, is
//     incomplete and never an empty success.
//
// Failure: when the provider does not answer the task fails, to be tried again.
// From the second attempt on, what was found counts: the evidence is then
// incomplete and says what is missing.
package investigator
