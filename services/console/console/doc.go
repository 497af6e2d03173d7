// Package console is the staff edge: it shows cases, lists what waits for people,
// and relays decisions that approvers and custodians signed.
//
// Consumes: HTTP requests; case records by direct get of CASES; the read model in
// Redis, in which it looks for what waits. Emits: approval.decision and
// custody.decision on intake.console.{tenant}.{case}. Grants: those, and the
// emergency stop. It holds no signing key and no payment credential: it can
// neither make nor judge an approval (AUTH-2), and checks a decision for its
// form only.
//
// Invariants: a staff member sees the tenants of their token and nothing of
// others, which are answered like unknown cases (TENANT-1). The message id of
// a decision derives from its text and signature, so relaying it again is the
// same message. Staff tokens are never taken from a URL; the API takes them as
// bearer tokens, the page as the password of HTTP Basic, which the API refuses,
// so that no browser sends a decision by itself. Text from outside is shown
// with its invisible characters escaped.
//
// What the read model says is a hint: each case of a list is read before it is
// shown, and one that has moved on is left out.
//
// Failure: without Redis lists get 503 and cases are shown all the same. A direct read may be stale; a caller that names a version waits for
// it, bounded, and gets 503 when it does not come. Without the broker every
// request gets 503 and may be repeated.
package console
