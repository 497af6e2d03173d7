// Package verifier checks every claim of a draft against records, before
// a reply may leave the desk (TRUTH-1).
//
// Consumes: task.verifier.*.* (slice verify). Emits: verification, or
// task.error. Grants: the payments read key of its own with the tools
// payments.list_captures and payments.get_refund, and state.read for the
// records inside its task.
//
// It is independent. It takes the claims out of the text itself: amounts,
// refund references, wording about refunds, dates, counts, identifiers, card
// digits. What the composer says it meant to claim is not read. Each claim is
// checked against the facts the record supports and against what the payments
// provider says to this service's own key.
//
// Invariants:
//   - Every number in a reply is explained by a record: the order, an amount,
//     a count, a date, a refund reference or the days of a rule. A number that
//     is none of these is an unsupported claim.
//   - A refund is named only if the record holds it, the provider knows it and
//     it is of this order; it is called completed only if the provider says so.
//   - What is said of refunds without a reference, of approvals and of the
//     future is unsupported unless it is one of the few forms a fact allows.
//   - Every fact the reply must carry is in the text; a person chooses.
//   - In a person's own words (kind WRITTEN) each sentence is a courtesy from
//     a list, a question or request, or a statement of facts of the record in
//     the words of their templates. All else is refused. A question asserts
//     nothing: its numbers are checked like all others, things it names may be
//     unknown, and it takes no refund, approval, promise or outcome for granted.
//   - What cannot be understood is rejected: hidden characters, markup, another
//     language, or a statement about money that matches no fact.
//
// Failure: it fails closed. When an own look-up gives no answer, the task
// fails to be tried again; nothing is verified without it.
package verifier
