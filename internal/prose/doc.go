// Package prose takes text from outside apart: words, numbers, amounts, and
// whatever in it a reader cannot see.
//
// It reads and never decides. Digits of every script become ASCII (Unicode
// category Nd), typographic variants become plain ones, tags and links become
// space, and characters that hide or reorder text are dropped and reported.
// Where what a person sees around a number may differ from what the bytes say,
// the text is Ambiguous, and nobody should pick a reading.
//
// Read is linear in the length of the text, never fails and never panics; the
// caller bounds the length.
package prose
