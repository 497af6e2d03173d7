// Package broker renders the configuration of the desk's broker from the role
// manifest and runs it embedded.
//
// Two accounts: JS holds the streams and only the provisioner's identity; APP
// holds the services. APP imports, one by one, the publish subjects, reads,
// consumers and acknowledgements that some service is granted, and each
// service's NKEY user may use exactly its own of them (AUTH-1). Because the
// streams are behind imports, an answer is never stored: a request with a
// foreign reply subject gets its answer inside APP, where no stream listens.
//
// No service can create, change, pause, purge or delete anything. The
// provisioner can create and update streams and consumers and read their
// state; it cannot publish, read messages, purge or delete.
//
// Rendering refuses a manifest that does not hold together, so that a rule
// which would do nothing is found before the broker starts.
package broker
