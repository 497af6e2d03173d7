// Package console is the staff edge: it shows cases, lists what waits for people,
// and relays decisions that approvers and custodians signed.
//
// Consumes: HTTP requests; case records by direct get of CASES; the read model in
// Redis, in which it looks for what waits. Emits: approval.decision and
// custody.decision on intake.console.{tenant}.{case}; the switches of the
// emergency stop on control.stop.{tenant or all}, and an audit event of each
// change on audit.console.{tenant or all}. It holds no signing key and no
// payment credential: it can neither make nor judge an approval (AUTH-2), and
// checks a decision for its form only.
//
// Invariants: a staff member sees the tenants of their token and nothing of
// others, which are answered like unknown cases (TENANT-1). The message id of
// a decision derives from its text and signature, so relaying it again is the
// same message. Staff tokens are never taken from a URL; the API takes them as
// bearer tokens, the page as the password of HTTP Basic, which the API refuses,
// so that no browser sends a decision by itself. Text from outside is shown
// with its invisible characters escaped.
//
// The emergency stop: whoever sees a tenant may stop it; stopping all and
// releasing are rights of their own. The audit log has a change before the
// switch does, and what became of it after. Switches change by compare-and-set
// on the sequence the caller saw, so nobody overwrites what they did not see; a
// stop that names none goes over whatever there is and tells what it replaced.
//
// Reconciliation: whoever sees a tenant may have its records of money compared
// (control.reconcile.{tenant}, an audit event first) and reads what the executor
// and the orchestrator found (report.*). One run of a tenant is under way at a
// time; its request is written by compare-and-set over the last one.
//
// What the read model says is a hint: each case of a list is read before it is
// shown, and one that has moved on is left out.
//
// Failure: without Redis lists get 503 and cases are shown all the same. A
// direct read may be stale; a caller that names a version waits for it,
// bounded, and gets 503 when it does not come. Without the broker every request
// gets 503 and may be repeated. Without the audit log a stop goes on and says
// so, and nothing is released. A change whose acknowledgement is lost is sent
// again and read back; when nobody knows what became of it the answer says that.
package console
