// Package telemetry gives one process its logs, metrics and traces.
//
// Each Telemetry has a registry of its own and sets no global, so several
// services can live in one process without mixing their figures. Log lines
// carry the trace and span of their context. Trace context crosses the bus and
// HTTP as W3C traceparent. Spans are handed to the given processors; without
// any they only carry the trace on.
//
// Nothing here decides anything: when telemetry fails, the desk works on.
package telemetry
