// Package gateway is the HTTP edge for customer channels.
//
// Consumes: HTTP requests; stored and republished views (direct get of VIEWS,
// live.view.*.*; for the read model its own consumer, and the stream's leader to
// fill it). Emits: case.opened,
// case.message and case.cancel on intake.gateway.{tenant}.{case}.
// Grants: those, the backlog of the consumers that cases wait for, and Redis for
// rate limits and lists. It holds no payment credential and cannot write a case
// record.
//
// operations lists the API, openapi.yaml describes it, and a test compares the
// two and every way a request can end. What goes wrong is a problem document
// (docs/problems.md).
//
// Invariants:
//   - Tenant and customer come from the credential, never from the body
//     (TENANT-1): an API key's channel says them, or a verified token of the
//     channel's issuer does. Only a key that may names a customer in a header.
//   - Whatever is wrong with a credential, the answer is the same; the reason is
//     in a metric and the log, the credential in neither (B78).
//   - One post is one case (LOSS-1): the case id is a hash of tenant, channel,
//     endpoint, Idempotency-Key and, for a customer with a token, customer; the
//     post is a compare-and-set against an empty subject. Neither memory nor
//     Redis decides whether a post is a repeat. 202 is answered only when the
//     post is stored with exactly this text, as it is masked, for exactly this
//     customer; a key is told apart for as long as INTAKE keeps posts, and never
//     opens a second case after that.
//   - A message or cancel is taken only for a case whose view names the caller's
//     customer, and a retry with its key is the same message: it may be stored
//     twice and is recorded once. A message gets 202 when the view says that the
//     record met it first with this text, and 409 when with another one (LOSS-1).
//   - A case of another customer or tenant is answered like one that does not
//     exist: the same bytes, after the same wait.
//   - A follower never gets an older version after a newer one, and nothing
//     after its token has ended.
//   - A list holds the caller's cases only, and all of them up to the
//     projector's lag; else it is refused.
//   - No subject and no key of Redis is built from an id before it is checked.
//   - What concerns started cases is never refused for the sake of new ones:
//     new cases alone wait while the desk is behind.
//   - The provider's webhooks are hints (B74): verified, bound to now, stored as
//     provider.event at every case of the order under an id that is a function
//     of event and case. None of their content is believed. A process stores an
//     event once while it can be replayed, as far as it remembers.
//   - Who has shown no credential takes no place from those who have: webhooks
//     wait in a room of their own, not for long, until they are verified.
//   - Webhooks to channels: package deliveries.
//
// Failure: without the broker posts get 503 with Retry-After; retrying with the
// same key is always safe. While the orchestrator is away or far behind,
// messages are stored and get 503 not_confirmed after viewWait: nothing is lost,
// and nobody is told that a text was taken which may have come second. Without
// Redis each process applies its own local limits, and lists get 503; the model
// is built again from VIEWS when Redis was emptied. When the desk's backlog
// cannot be read, the last reading counts for pressureKept, then new cases pass
// up to the rate limits. Views are read models: one that does not exist yet is
// waited for up to viewWait. A follower that cannot keep up is disconnected and
// resumes with Last-Event-ID. When the issuer of a token cannot be asked for a
// key it may have, that token gets 503 and nobody else notices.
package gateway
