// Package deliveries sends each reply of a case to the webhook of the channel
// the case came by.
//
// Consumes: views (gateway-replies), and its own log. Emits: delivery.{tenant}.{case}
// and endpoint.{tenant}.{channel} on DELIVERIES; HTTP requests to receivers.
//
// Invariants:
//   - A reply is one webhook: its id and body are functions of tenant, case,
//     version and what the view says of that reply. Whatever is sent again, by
//     a redelivery, a restart or another replica, has the same id (B24).
//   - An attempt is begun by a compare-and-set on the case's log, which gives it
//     a lease longer than an attempt may take: two replicas never make the same
//     attempt, nor two attempts at once.
//   - What is still to be sent is in the log, not in memory and not in a delayed
//     message: a replica that dies leaves its work to the others, who follow the
//     log. A view is acknowledged when the log holds its replies.
//   - Only https and public addresses, unless the endpoint says otherwise
//     (package webhook).
//   - Logs and metrics hold ids, channels, status codes and reason codes, never
//     a body, a URL or a secret.
//
// Delivery is at least once. A receiver that answered and was not heard gets
// the same webhook again, and so does everybody when the log is lost: it is
// recomputable, and views are walked again at every start and whenever another
// broker answered. Replies older than maxAge are not taken up.
//
// Failure: an endpoint that fails too long, or answers 410, is disabled; replies
// that come due meanwhile are recorded as suppressed and not sent later. One
// that failed is probed with a due reply once an hour; one that answered 410
// stays disabled until its configuration says another URL or a later since.
package deliveries
