// Package composer writes the customer's reply.
//
// Consumes: task.composer.*.* (slice compose). Emits: draft, or task.error.
// Grants: none; it has no tools and no network peer.
//
// Invariants:
//   - A reply is written from the typed facts of its task and from nothing else:
//     no customer text, no policy text and no payment record comes here.
//   - Every fact gets a sentence, and every sentence states a fact, asks for
//     something, or is a fixed courtesy. The claims of a draft are its facts.
//   - Plain, calm, no blame, no promise. A refund is named with its amount,
//     reference and the provider's status; nothing else says that money moved.
//   - The same facts give the same text, so that an unknown order and somebody
//     else's are answered with the same bytes.
//
// Failure: a fact this version has no sentence for fails the task.
package composer
