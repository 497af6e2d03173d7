// Package effectstore keeps what the refund executor must not forget: one effect
// entry an order, one cap window a tenant, and the refusals for the auditors. It
// also reads the stop switches.
//
// A write names the sequence it expects to replace, 0 for a new one, and is
// stored only if that is still the last (compare-and-set). Of any number of
// writers exactly one wins; the others get ErrConflict. After ErrUncertain it
// may have been stored: read and decide again. Any other error means that
// nothing was stored.
//
// A write can be bounded in time (NotAfter): what was judged before a process
// stood still is not stored after it, but judged again.
//
// An entry is read with the time at which the broker stored it, and the broker's
// clock can be asked for. Both are one clock, unlike those of the processes: what
// was done after a write is judged by them.
//
// Everything is read at the stream's leader, so a read sees every write that was
// acknowledged before. A stop switch that is there and cannot be understood is
// a stop.
//
// JetStream is the store of the desk, Memory that of simulations and tests. Both
// pass the suite in effectstoretest.
package effectstore
