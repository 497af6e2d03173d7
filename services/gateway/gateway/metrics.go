package gateway

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

type metrics struct {
	posts          metric.Int64Counter
	outcomes       map[string]metric.MeasurementOption
	limitedLocally metric.Int64Counter
}

func newMetrics(m metric.Meter, streams *gate) (*metrics, error) {
	posts, err1 := m.Int64Counter("amends_gateway_posts_total", metric.WithDescription("Posts by outcome."))
	local, err2 := m.Int64Counter("amends_gateway_local_limit_total", metric.WithDescription("Requests judged by the local cap because Redis was away."))
	_, err3 := m.Int64ObservableGauge("amends_gateway_streams", metric.WithDescription("Followers connected."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(streams.inside.Load())
			return nil
		}))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("make the gateway's metrics: %w", err)
	}
	out := &metrics{posts: posts, limitedLocally: local, outcomes: map[string]metric.MeasurementOption{}}
	for _, o := range []string{"accepted", "repeated", "key_reused", "not_confirmed", "unavailable"} {
		out.outcomes[o] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", o)))
	}
	return out, nil
}

func (m *metrics) post(ctx context.Context, outcome string) {
	m.posts.Add(ctx, 1, m.outcomes[outcome])
}
