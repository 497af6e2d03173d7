package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

type metrics struct {
	posts          metric.Int64Counter
	outcomes       map[string]metric.MeasurementOption
	limitedLocally metric.Int64Counter
	limited        metric.Int64Counter
	events         metric.Int64Counter
}

// gauges are figures that are read when metrics are.
type gauges struct {
	streams, inFlight, unprojected func() int64
}

func newMetrics(m metric.Meter, read gauges) (*metrics, error) {
	posts, err1 := m.Int64Counter("amends_gateway_posts_total", metric.WithDescription("Posts by outcome."))
	local, err2 := m.Int64Counter("amends_gateway_local_limit_total", metric.WithDescription("Requests judged by the local cap because Redis was away."))
	limited, err3 := m.Int64Counter("amends_gateway_limited_total", metric.WithDescription("Requests refused by a rate limit, by which."))
	events, err7 := m.Int64Counter("amends_gateway_provider_events_total", metric.WithDescription("Events of the payments provider by kind and outcome."))
	gauge := func(name, description string, read func() int64) error {
		_, err := m.Int64ObservableGauge(name, metric.WithDescription(description), metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if read != nil {
				o.Observe(read())
			}
			return nil
		}))
		return err
	}
	err4 := gauge("amends_gateway_streams", "Followers connected.", read.streams)
	err5 := gauge("amends_gateway_cases_in_flight", "Messages that wait or are handled at the consumers of posts, results and tasks.", read.inFlight)
	err6 := gauge("amends_gateway_views_unprojected", "Views that are not in the read model.", read.unprojected)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return nil, fmt.Errorf("make the gateway's metrics: %w", err)
	}
	out := &metrics{posts: posts, limitedLocally: local, limited: limited, events: events, outcomes: map[string]metric.MeasurementOption{}}
	for _, o := range []string{"accepted", "repeated", "key_reused", "not_confirmed", "unavailable", "overloaded"} {
		out.outcomes[o] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", o)))
	}
	return out, nil
}

func (m *metrics) post(ctx context.Context, outcome string) {
	m.posts.Add(ctx, 1, m.outcomes[outcome])
}

func (m *metrics) refused(ctx context.Context, level string) {
	m.limited.Add(ctx, 1, metric.WithAttributes(attribute.String("limit", level)))
}

// event counts an event of the provider; a kind that is not known is not told.
func (m *metrics) event(ctx context.Context, kind, outcome string) {
	if !slices.Contains(providerKinds, kind) {
		kind = "other"
	}
	m.events.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind), attribute.String("outcome", outcome)))
}
