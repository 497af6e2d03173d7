// Package provision creates the streams and consumers of the role manifest and
// compares a running broker with it. It works with the provisioner's identity
// in the streams' account; no running service can do what it does.
//
// Apply refuses to create an empty synced stream beside existing ones: a stream
// that was there and is gone is a loss that a person must see, never a reason
// to start over with no record of money that moved. Recomputable streams and
// consumers are created again; that costs redelivery, not cases.
package provision
