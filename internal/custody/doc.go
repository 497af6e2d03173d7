// Package custody is the packet with which a case is handed to people: what
// made it necessary, verified facts with their sources, the customer's
// statements, what was done and promised, what is open. It is limited to that
// purpose; it is never the transcript and never a summary taken for a fact.
//
// A packet has a canonical text form, one field a line, versioned by its first
// line. A custodian's decision names its hash, so that a case that changed
// since it was shown is not decided.
//
// The package is pure: no clock, no files, no network.
package custody
