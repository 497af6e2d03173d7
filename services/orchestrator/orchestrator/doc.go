// Package orchestrator is the service that owns case records.
//
// Consumes: posts (intake.gateway), signed decisions of approvers and custodians
// (intake.console), results (result.*), due timers (due.*); the switches of the
// emergency stop (control.stop.*) at their leader. Emits: case commits
// (case.*), tasks (task.*), customer views (view.*), timers (timer.*), dead letters. Grants: role
// orchestrator of the manifest; one tool, orders.verify_owner, with a key that
// can do nothing else.
//
// A transition commits in one compare-and-set publish (package casestore) and
// then sends casework.Outgoing; nothing else is written. An input is
// acknowledged only when the record that a successful compare-and-set wrote
// holds it, so a stale cache can throw nothing away (LOSS-1, STATE-1). Whatever
// is lost after the commit is sent again on redelivery, by the timer, by the
// sweeper, at start and after a broker restart (LOSS-2, LIVE-1).
//
// A message to a closed case goes on in a linked case of the same request. That
// one takes it first, by its own compare-and-set; then the closed case records
// where it went. Until then a redelivery finds the same linked case (LOSS-1,
// STATE-3).
//
// When the emergency stop is released, cases whose effect it held are given the
// input stop.lifted, in the same way and once for each release. Each replica
// knows the held cases it committed or swept; on a release the commits since the
// stop are swept again, for those of a replica that is gone. It is a short cut:
// a held case asks the executor again by its own deadline as well (LIVE-1).
//
// A finding that was sent to a case which does not exist is applied to the one
// that stands for it, by the same protocol (MONEY-3).
//
// By schedule and when the console asks (control.reconcile.*) it compares the
// effect ledger (EFFECTS) with the cases and writes a report; what disagrees is
// applied to its case as case.finding, in the same way and once (MONEY-3).
//
// Any number of replicas share the consumers. In one process a keyed lock
// avoids needless conflicts; correctness rests on the compare-and-set alone.
//
// The registry of people is as its file is now; while it is none, their decisions
// are retried.
//
// When the payments side or the broker is away, inputs are retried with growing
// delay and dead-lettered when their deliveries are used up; nothing is guessed.
package orchestrator
