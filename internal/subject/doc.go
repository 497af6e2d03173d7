// Package subject is the one place where broker subjects are built and read.
// A search for one of its functions answers who publishes or consumes what.
//
// The tokens of a subject are an authority statement: the broker lets exactly
// one service publish under its own sender token, so a receiver derives the
// sender from the subject and never from the message.
package subject
