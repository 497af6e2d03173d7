// Package webhook signs, checks and sends webhooks in the form of
// Standard Webhooks (https://www.standardwebhooks.com): the headers webhook-id,
// webhook-timestamp and webhook-signature, an HMAC-SHA256 over id, timestamp and
// body.
//
// Invariants:
//   - Verify accepts only what one of the given secrets signed: exactly this
//     body, id and timestamp, and a timestamp within Tolerance of now. A header
//     that is missing or given twice verifies nothing (B74).
//   - Several secrets are a rotation: all of them sign, any of them verifies.
//   - A Client reaches public addresses only. The address is judged when the
//     connection is made, after the name was resolved, so a name that changes
//     its address in between gains nothing. It follows no redirect, uses no
//     proxy of the environment, takes no compressed answer and reads at most
//     maxAnswer of one.
//   - Delay is a function of the webhook's id and of how often it has failed.
//
// Failure: what became of an attempt is an Outcome with a reason code, never an
// error text: a receiver's words do not get into logs.
package webhook
