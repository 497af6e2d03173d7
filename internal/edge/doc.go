// Package edge is what the HTTP edges of the desk, gateway and console, do
// alike: limits of the server, TLS, graceful drain, request ids, problem
// documents, access log, request metric, and bearer tokens of which only hashes
// are kept.
//
// Invariants: no header, body or query of a request is logged. A credential is
// compared in constant time. Every answer carries X-Request-Id. When the context
// of Serve ends, nothing new is accepted and running requests get DrainTimeout
// to finish; long streams must watch that context themselves. A certificate that
// is replaced by a bad one goes on serving.
package edge
