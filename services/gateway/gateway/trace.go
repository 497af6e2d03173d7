package gateway

import (
	"context"
	"crypto/rand"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var w3c propagation.TraceContext

// trace continues the caller's trace or begins one. There is a trace id even
// when no spans are recorded: the case carries it to its end.
func (g *gateway) trace(r *http.Request) (context.Context, trace.Span) {
	ctx := w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := g.tracer.Start(ctx, r.Pattern, trace.WithSpanKind(trace.SpanKindServer))
	if span.SpanContext().HasTraceID() {
		return ctx, span
	}
	var cfg trace.SpanContextConfig
	_, _ = rand.Read(cfg.TraceID[:]) // never fails
	_, _ = rand.Read(cfg.SpanID[:])
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(cfg)), span
}
