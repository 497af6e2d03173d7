// Package bustest runs the real embedded broker for tests: the manifest's
// accounts, streams and consumers, and a connection per service on that
// service's own credential. Nothing is mocked and no test needs an admin
// credential to act; the operator's is for assertions.
package bustest
