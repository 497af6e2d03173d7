// Package casefile reads message cases, one JSON object a line, and judges what
// a desk made of them. docs/cases.md describes the format.
//
// It is pure: it drives no desk and has no clock. Package caserun plays a case
// on a desk and hands the evidence over.
//
// Invariants:
//   - Nothing is skipped. A line that cannot be read, a moment or an approver's
//     action that is not understood fails its case and says why.
//   - A check that this package does not know is reported as not judged, never
//     as passed.
//   - Judging reads the evidence alone: what the desk recorded, sent, and moved.
//     It does not know how the desk came to it, nor which case it is: no rule
//     asks for a case's id.
//   - Facts are compared as values. An amount is the amount in whatever
//     grouping; a word is met by any word of its group in words.go.
package casefile
