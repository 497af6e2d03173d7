// Package sandboxtest starts payments sandboxes for tests: the real service on
// a free port, with a journal in the test's own directory, a clock the test
// sets, and one API key of each scope.
package sandboxtest
