// Package e2e holds the tests that run a whole desk: the real broker with file
// storage, every service on its own credential, the payments sandbox over HTTP,
// approvals signed with an approver's own key.
package e2e
