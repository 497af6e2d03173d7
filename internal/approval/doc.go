// Package approval is the signature discipline for refunds: the canonical text
// of an action record, its hash, and approvals and denials that approvers sign
// with their own Ed25519 keys.
//
// Services relay signed decisions; none can make one (AUTH-2). What is signed
// is text a person can read, one field a line, versioned by its first line:
//
//	amends-action/1
//	tenant=acme-in
//	case=req-8472
//	case-version=5
//	proposal=1
//	order=8472
//	refund=pay_8472_b INR 200000 duplicate_capture refund:req-8472:pay_8472_b
//	evidence-sha256=…
//	created=2026-03-12T10:14:01Z
//	expires=2026-03-12T10:44:01Z
//
// Every line is always there and no value may be empty or hold a separator, so
// two different records never give one text. The approval of one action is not
// the approval of another amount, payment, order or time. An action that
// a custodian proposed has a line proposed-by after the proposal and is of
// version 2; its proposer cannot approve it.
//
// Two approvers are two people: a registry in which one key stands for two of
// them, or one key id for two keys, is refused.
//
// Custodians sign what they do with a case the same way (CustodyText). The steps
// settle and resolve are of version 2 of that text; the others keep the bytes
// they had.
//
// The package is pure: no clock, no files, no network. Refusals carry a reason
// code (Refusal).
package approval
