package edge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/ident"
)

// Observe gives every request an id, counts and times it under its route, and
// logs it at debug level.
func Observe(h http.Handler, log *slog.Logger, meter metric.Meter, now func() time.Time) (http.Handler, error) {
	seconds, err := meter.Float64Histogram("amends_http_request_seconds",
		metric.WithDescription("Time to answer a request, by route and status; for streams, how long they lasted."),
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10))
	if err != nil {
		return nil, fmt.Errorf("make the request metric: %w", err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := now()
		id := requestID(r)
		hd := w.Header()
		hd.Set(deskapi.HeaderRequestID, id)
		hd.Set("X-Content-Type-Options", "nosniff")
		hd.Set("Cache-Control", "no-store")
		sw := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		h.ServeHTTP(sw, r)
		took := now().Sub(start)
		ctx := context.WithoutCancel(r.Context())
		seconds.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("route", r.Pattern), attribute.Int("status", sw.status)))
		if log.Enabled(ctx, slog.LevelDebug) {
			log.LogAttrs(ctx, slog.LevelDebug, "request answered", slog.String("request_id", id),
				slog.String("route", r.Pattern), slog.Int("status", sw.status), slog.Duration("took", took))
		}
	}), nil
}

type requestIDKey struct{}

// RequestID gives the id of the request a context came with, for logs; empty
// outside of Observe.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// requestID takes the caller's request id when it is a plain token, so that it
// can be logged, and makes one otherwise.
func requestID(r *http.Request) string {
	if id := r.Header.Get(deskapi.HeaderRequestID); ident.Token(id) == nil {
		return id
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
