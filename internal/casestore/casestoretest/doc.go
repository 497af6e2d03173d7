// Package casestoretest is the conformance suite of case stores: whatever holds
// the records of cases passes Run, so that callers tested on the in-memory store
// behave the same on the broker.
package casestoretest
