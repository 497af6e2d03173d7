package deliveries

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

type metrics struct {
	attempts metric.Int64Counter
	settled  metric.Int64Counter
}

func newMetrics(m metric.Meter, endpoints map[place]*endpoint) (*metrics, error) {
	attempts, err1 := m.Int64Counter("amends_gateway_webhook_attempts_total", metric.WithDescription("Webhook attempts by outcome."))
	settled, err2 := m.Int64Counter("amends_gateway_webhook_deliveries_total", metric.WithDescription("Webhook deliveries that ended, by how."))
	_, err3 := m.Int64ObservableGauge("amends_gateway_webhook_disabled_endpoints", metric.WithDescription("Webhook endpoints that are disabled."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			n := int64(0)
			for _, e := range endpoints {
				if e.seen().GetDisabledAt() != nil {
					n++
				}
			}
			o.Observe(n)
			return nil
		}))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("make the webhook metrics: %w", err)
	}
	return &metrics{attempts: attempts, settled: settled}, nil
}

func (m *metrics) attempt(ctx context.Context, r webhook.Reason) {
	m.attempts.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", string(r))))
}

func (m *metrics) ended(ctx context.Context, s amendsv1.DeliveryStatus) {
	m.settled.Add(ctx, 1, metric.WithAttributes(attribute.String("status", StatusName(s))))
}

// StatusName gives a status as the API writes it: delivered.
func StatusName(s amendsv1.DeliveryStatus) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "DELIVERY_STATUS_"))
}
