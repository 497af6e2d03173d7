// Package entitlement decides what a customer is owed on one order, from the
// payment evidence and the policy rule: a refund of whole duplicate captures,
// nothing, a wait for better evidence, or a person's judgement.
//
// The rules (rule set refund-rules/1):
//
//   - Excess = settled captures − refunds not failed − order total. A duplicate
//     is excess made of whole later captures; the earliest capture stays.
//   - A refund needs capture and settlement, no open dispute, no earlier partial
//     refund on the capture, the order's currency, and settlement at most the
//     rule's window before the case was received, both ends included.
//   - The approval threshold compares all refunds of the order in 30 days, this
//     one included. A currency without a threshold always needs a person.
//   - A record that contradicts itself or holds an unknown value is no basis:
//     hold, and after the rechecks a person.
//
// The package is pure and reads typed fields only: no text decides anything.
package entitlement
