// Package boot turns a service's Run function into a well-behaved process:
// strict configuration, telemetry, probes, signals, exit codes.
//
// Configuration is one YAML file, decoded over the service's defaults. Unknown
// and repeated keys fail. Each value can be replaced by an environment variable
// named after its path: broker.seed_file is AMENDS_BROKER_SEED_FILE. The result
// is checked as a whole and every problem is listed at once. Secrets are never
// values, only paths of files (ReadSecret).
//
// The admin listener serves /healthz (200 while the process runs), /readyz (200
// when every registered check passes, else 503 with the reasons) and /metrics.
// A process with no check registered yet is not ready.
//
// SIGINT or SIGTERM cancels the service's context; it then has
// shutdown_timeout to finish or return what is in flight. A second signal, or
// the timeout, ends the process at once, and the broker hands out again what
// was not acknowledged. Exit codes: 0 clean, 1 failure, 2 bad configuration.
package boot
