package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// bg is the context of metrics, which carry no exemplars.
var bg = context.Background()

// metrics are the bus's instruments. Labels are subject families, consumer
// names, outcomes and reason codes, never anything from a message.
type metrics struct {
	messages    metric.Int64Counter
	deadLetters metric.Int64Counter
	disconnects metric.Int64Counter
	errors      metric.Int64Counter
	denied      metric.Int64Counter
	strays      metric.Int64Counter
	heartbeats  metric.Int64Counter
	publish     metric.Float64Histogram
	handle      metric.Float64Histogram

	// sets keeps the attribute sets that were built once.
	sets sync.Map
}

func newMetrics(m metric.Meter) (*metrics, error) {
	var errs []error
	counter := func(name, what string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, what string) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithDescription(what),
			metric.WithExplicitBucketBoundaries(.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10))
		errs = append(errs, err)
		return h
	}
	out := &metrics{
		messages:    counter("amends_bus_messages_total", "Consumed messages by outcome and reason."),
		deadLetters: counter("amends_bus_dead_letters_total", "Dead letters written, by reason."),
		disconnects: counter("amends_bus_disconnects_total", "Lost broker connections."),
		errors:      counter("amends_bus_connection_errors_total", "Asynchronous connection errors."),
		denied:      counter("amends_bus_denied_total", "Permission violations the broker reported."),
		strays:      counter("amends_bus_live_strays_total", "Messages on live subjects that no stream republished."),
		heartbeats:  counter("amends_bus_heartbeats_total", "In-progress signals for long handlings."),
		publish:     seconds("amends_bus_publish_seconds", "Time to the acknowledgement of a publish."),
		handle:      seconds("amends_bus_handle_seconds", "Time one delivery was handled."),
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("create the bus metrics: %w", err)
	}
	return out, nil
}

// labels is a key of sets: up to three label names and their values.
type labels struct{ k1, v1, k2, v2, k3, v3 string }

func (m *metrics) set(l labels) metric.MeasurementOption {
	if v, ok := m.sets.Load(l); ok {
		if s, ok := v.(metric.MeasurementOption); ok {
			return s
		}
	}
	var kv []attribute.KeyValue
	for _, p := range [][2]string{{l.k1, l.v1}, {l.k2, l.v2}, {l.k3, l.v3}} {
		if p[0] != "" {
			kv = append(kv, attribute.String(p[0], p[1]))
		}
	}
	s := metric.WithAttributeSet(attribute.NewSet(kv...))
	m.sets.Store(l, s)
	return s
}

func (m *metrics) published(subj string, err error, took time.Duration) {
	kind, _, _ := strings.Cut(subj, ".")
	m.publish.Record(bg, took.Seconds(), m.set(labels{"kind", kind, "outcome", publishOutcome(err), "", ""}))
}

func publishOutcome(err error) string {
	switch {
	case err == nil:
		return "stored"
	case errors.Is(err, ErrConflict):
		return "conflict"
	case errors.Is(err, ErrUncertain):
		return "uncertain"
	case errors.Is(err, ErrDenied):
		return "denied"
	case errors.Is(err, ErrUnavailable):
		return "unavailable"
	default:
		return "refused"
	}
}

func (m *metrics) settled(consumer, outcome, reason string, took time.Duration) {
	m.messages.Add(bg, 1, m.set(labels{"consumer", consumer, "outcome", outcome, "reason", reason}))
	m.handle.Record(bg, took.Seconds(), m.set(labels{"consumer", consumer, "", "", "", ""}))
}

func (m *metrics) deadLetter(service, reason string) {
	m.deadLetters.Add(bg, 1, m.set(labels{"service", service, "reason", reason, "", ""}))
}
