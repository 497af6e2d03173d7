package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope is the instrumentation scope of everything this module measures.
const scope = "github.com/amends-dev/amends"

// Telemetry is one service's logs, metrics and traces. It is safe for
// concurrent use. Shutdown it once.
type Telemetry struct {
	registry *prometheus.Registry
	metrics  *sdkmetric.MeterProvider
	traces   *sdktrace.TracerProvider
	log      *slog.Logger
}

type options struct {
	output  io.Writer
	level   slog.Leveler
	version string
	spans   []sdktrace.SpanProcessor
}

// Option changes how New sets things up.
type Option func(*options)

// WithOutput writes log lines to w instead of standard error.
func WithOutput(w io.Writer) Option { return func(o *options) { o.output = w } }

// WithLevel drops log lines below a level; the default is info.
func WithLevel(l slog.Leveler) Option { return func(o *options) { o.level = l } }

// WithVersion names the build in metrics and spans.
func WithVersion(v string) Option { return func(o *options) { o.version = v } }

// WithSpans hands finished spans to p.
func WithSpans(p sdktrace.SpanProcessor) Option {
	return func(o *options) { o.spans = append(o.spans, p) }
}

// New sets up telemetry for a service.
func New(service string, opts ...Option) (*Telemetry, error) {
	o := options{output: os.Stderr, level: slog.LevelInfo}
	for _, opt := range opts {
		opt(&o)
	}
	res := resource.NewSchemaless(attribute.String("service.name", service), attribute.String("service.version", o.version))
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("set up the metrics exporter: %w", err)
	}
	traceOptions := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	for _, p := range o.spans {
		traceOptions = append(traceOptions, sdktrace.WithSpanProcessor(p))
	}
	lines := slog.NewJSONHandler(o.output, &slog.HandlerOptions{Level: o.level})
	return &Telemetry{
		registry: registry,
		metrics:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(res)),
		traces:   sdktrace.NewTracerProvider(traceOptions...),
		log:      slog.New(traced{lines}).With(slog.String("service", service)),
	}, nil
}

// Logger writes JSON lines.
func (t *Telemetry) Logger() *slog.Logger { return t.log }

// Meter makes instruments whose values Handler serves.
func (t *Telemetry) Meter() metric.Meter { return t.metrics.Meter(scope) }

// Tracer starts spans.
func (t *Telemetry) Tracer() trace.Tracer { return t.traces.Tracer(scope) }

// Propagator carries trace context over a boundary as W3C traceparent and
// tracestate. Baggage is left out: it would carry whatever a caller put in.
func Propagator() propagation.TextMapPropagator { return propagation.TraceContext{} }

// Handler serves the metrics in Prometheus' text form.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Shutdown hands out what is still held back, within ctx.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if err := errors.Join(t.traces.Shutdown(ctx), t.metrics.Shutdown(ctx)); err != nil {
		return fmt.Errorf("shut down telemetry: %w", err)
	}
	return nil
}
