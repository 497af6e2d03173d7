// Package casestore keeps the versioned records of cases. A case's newest
// commit is the truth; older ones are its history and never change.
//
// A commit names the sequence it expects to replace, 0 for a new case, and is
// stored only if that is still the case's last (compare-and-set). Of any number
// of claimants exactly one wins; the others get ErrConflict. After ErrUncertain
// the commit may have been stored: load the case and look. Any other error
// means that nothing was stored.
//
// Load and Log read at the stream's leader, so they see every commit that was
// acknowledged before. What they return belongs to the caller.
//
// JetStream is the store of the desk, Memory that of simulations and tests. Both
// pass the suite in casestoretest.
package casestore
