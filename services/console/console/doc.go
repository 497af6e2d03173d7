// Package console is the staff edge: it shows cases and relays decisions that
// approvers signed.
//
// Consumes: HTTP requests; case records by direct get of CASES. Emits:
// approval.decision on intake.console.{tenant}.{case}. Grants: those two and
// the emergency stop. It holds no signing key and no payment credential: it can
// neither make nor judge an approval (AUTH-2), and checks a decision for its
// form only.
//
// Invariants: a staff member sees the tenants of their token and nothing of
// others, which are answered like unknown cases (TENANT-1). The message id of
// a decision derives from its signature, so relaying it again is the same
// message. Staff tokens are never taken from a URL; the API takes them as
// bearer tokens, the page as the password of HTTP Basic, which the API refuses,
// so that no browser sends a decision by itself. Text from outside is shown
// with its invisible characters escaped.
//
// Failure: a direct read may be stale; a caller that names a version waits for
// it, bounded, and gets 503 when it does not come. Without the broker every
// request gets 503 and may be repeated.
package console
