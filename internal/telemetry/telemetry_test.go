package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/amends-dev/amends/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, service string, opts ...telemetry.Option) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(service, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tel
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestTwoServicesOfOneProcessKeepTheirMetricsApart(t *testing.T) {
	t.Parallel()
	a, b := start(t, "gateway"), start(t, "composer")
	posts, err := a.Meter().Int64Counter("amends_gateway_posts_total")
	if err != nil {
		t.Fatal(err)
	}
	posts.Add(t.Context(), 3)
	if got := scrape(t, a); !strings.Contains(got, "amends_gateway_posts_total 3\n") || !strings.Contains(got, `service_name="gateway"`) {
		t.Errorf("gateway's metrics:\n%s", got)
	}
	if got := scrape(t, b); strings.Contains(got, "amends_gateway") {
		t.Errorf("composer shows the gateway's metrics:\n%s", got)
	}
}

func TestTraceContextCrossesABoundaryAndReachesTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	spans := tracetest.NewInMemoryExporter()
	sender := start(t, "gateway", telemetry.WithSpans(sdktrace.NewSimpleSpanProcessor(spans)))
	receiver := start(t, "orchestrator", telemetry.WithOutput(&out))

	ctx, span := sender.Tracer().Start(t.Context(), "post")
	headers := propagation.MapCarrier{}
	telemetry.Propagator().Inject(ctx, headers)
	span.End()

	got := telemetry.Propagator().Extract(context.Background(), headers)
	receiver.Logger().InfoContext(got, "case opened", slog.String("case_id", "req-8472"))

	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	want := span.SpanContext().TraceID().String()
	if line["trace_id"] != want || line["service"] != "orchestrator" || line["case_id"] != "req-8472" {
		t.Errorf("log line %v, want trace %s", line, want)
	}
	if trace.SpanContextFromContext(got).TraceID().String() != want {
		t.Error("the trace was not carried on")
	}
	if done := spans.GetSpans(); len(done) != 1 || done[0].Name != "post" {
		t.Errorf("spans %v", done)
	}
}

func TestLevelDropsLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	tel := start(t, "verifier", telemetry.WithOutput(&out), telemetry.WithLevel(slog.LevelWarn))
	log := tel.Logger().WithGroup("g").With(slog.Int("n", 1))
	log.Info("dropped")
	log.Warn("kept")
	if got := out.String(); strings.Contains(got, "dropped") || !strings.Contains(got, `"g":{"n":1}`) || strings.Contains(got, "trace_id") {
		t.Errorf("log:\n%s", got)
	}
}
