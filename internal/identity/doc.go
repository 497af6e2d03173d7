// Package identity judges the JSON Web Tokens of OpenID Connect issuers: ID
// tokens and JWT access tokens that somebody presents as a bearer token.
//
// Signature, header and issuer are checked by go-oidc, against keys that this
// package keeps; times, audience and party are checked here, with the caller's
// clock and leeway. What a good token may do is the caller's business.
//
// Invariants:
//   - Only asymmetric algorithms of the configured list verify, and only keys
//     the issuer publishes: no key, URL or certificate in a token counts.
//   - A token says when it ends and when it was issued, and names an audience of
//     ours; one for several audiences names the party it was issued to.
//   - Tokens that are no credential by themselves are refused: logout tokens and
//     security events, and tokens bound to a key of their holder.
//   - The issuer is asked for its keys when those held are older than MaxAge, or
//     when a token names an unknown one, and not more often than once in
//     Refresh. A key is good for as long as it is published.
//   - No part of a token is in an error, and so in no log: a Refusal is a reason
//     code.
//
// Failure: while the issuer is away its last keys go on working, up to MaxStale.
// A token that names none of them cannot be judged then and is neither good nor
// bad: ErrUnavailable. Before the first keys came that is every token.
package identity
