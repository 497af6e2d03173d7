// Package readmodel keeps in Redis which cases a customer has and which cases
// are about an order, for lists. It is rebuilt from the stored views and holds
// nothing that could be lost; nothing it says decides about money or about
// whether a post is a repeat.
//
// Invariants:
//   - An older version never replaces a newer one, whatever order views arrive
//     in and however many processes write: one script compares and writes.
//   - Every key of a case, customer or order names its tenant, and what is read
//     is compared with the tenant and the customer or order it was asked for
//     (TENANT-1). No key is built from an id that package ident refuses (B55).
//   - What is listed is complete up to the projector's lag, or it is ErrNotReady.
//     A marker says that every stored view has been put. It vanishes with the
//     rest when Redis is emptied, and an entry that Redis has dropped by itself
//     takes it away too.
//   - A list is ordered by when cases were opened, which never changes, so a
//     cursor neither skips nor repeats a case when others are opened meanwhile.
//
// Filling it takes a claim on the marker, which its holder extends meanwhile, and
// ends with Finish. Each step compares the marker with what the one before left,
// so Redis may be emptied at any moment of it: then the model is not ready.
//
// Failure: errors of Redis are returned as they are; the caller says that lists
// are away. The keys have no expiry: under memory pressure Redis must evict only
// keys that have one (maxmemory-policy volatile-ttl) or none. They share one
// hash slot, so the model lives on one server of a cluster.
package readmodel
