// Package caserun plays a message case (package casefile) on a desk of its own
// and hands what came of it to the judge.
//
// It is a channel, a customer, the approvers and an auditor, and nothing else:
// it posts over HTTP, signs with approvers' own keys, and reads the streams. It
// never tells the desk what a case expects, and decides from the desk alone
// when a case has come to rest.
//
// Invariants:
//   - Every case has a fresh desk in a fresh directory: no ledger, record or
//     effect of one case is seen by another.
//   - The desk lives in the case's time (package deskclock). Time is moved ahead
//     only while nothing is under way, and through every deadline of the desk on
//     the way: an approval that expires during "three days later" expires at its
//     own moment.
//   - A followup whose moment never comes fails the case; so does one the desk
//     cannot be given. Nothing is left out silently.
//   - Everything is bounded; a case that does not come to rest says what it was
//     waiting for.
package caserun
