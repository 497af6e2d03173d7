// Package allinone runs the whole desk in one process: broker, Redis, payments
// sandbox and every service, for development, demonstrations, load and
// end-to-end tests.
//
// It is the desk and not a model of it: the broker is the real server with file
// storage, each service is the deployable's own package on its own connection
// with its own credential, and what crosses between them crosses the broker or
// HTTP. Synced streams are on disk before they are acknowledged unless
// Options.NoSync says otherwise.
//
// Everything a desk needs lives in one directory and is found again at the next
// start: streams, seeds, approvers' keys, the sandbox's journal. The approvers
// are trial approvers; their keys are files that no service is given.
package allinone
