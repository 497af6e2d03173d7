// Package roles is the role manifest: what each service may do, as data.
//
// Streams, subjects, consumers, broker permissions, tools, record fields,
// secrets, network peers and owners are declared here once. The broker's
// accounts, users, permissions, streams and consumers are generated from it,
// the tool registry takes its grants from it, and the tests compare a running
// broker with it. No service has more than the manifest says (AUTH-1).
package roles
