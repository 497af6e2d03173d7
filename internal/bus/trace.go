package bus

import (
	"context"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

var w3c propagation.TraceContext

// carrier keeps the header names as W3C writes them, in lower case.
type carrier nats.Header

func (h carrier) Get(key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (h carrier) Set(key, value string) { h[key] = []string{value} }

func (h carrier) Keys() []string {
	keys := make([]string, 0, len(h))
	for k := range h {
		keys = append(keys, k)
	}
	return keys
}

// inject gives the trace headers of ctx, or nil when it has none. A remote
// span context is passed on as it came, so a trace survives services that
// record no spans.
func inject(ctx context.Context) nats.Header {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	h := make(nats.Header, 4)
	w3c.Inject(ctx, carrier(h))
	return h
}

// extract puts the sender's span context into ctx.
func extract(ctx context.Context, h map[string][]string) context.Context {
	return w3c.Extract(ctx, carrier(h))
}
