// Package policy holds the desk's policy documents and finds the one that
// applies.
//
// A corpus is a directory of YAML documents with a version of its own; a case
// is pinned to one corpus version. Each document has prose for people and, where
// a rule decides, the machine-readable RefundRule published with it: the rule
// is never read out of the prose.
//
// Search is deterministic: the same corpus, topic and moment always give the
// same finding. It returns the version that is current at the moment asked
// about, names superseded ones as such, and keeps a disagreement between two
// current documents of equal authority as a conflict for a person: it does not
// vote.
//
// Loading is strict: an unknown key, a broken chain of versions or a rule that
// cannot be applied is an error, and a corpus with an error is not loaded.
package policy
