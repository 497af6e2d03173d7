package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"

	"github.com/amends-dev/amends/internal/identity"
)

// How a caller was identified.
const (
	byKey   = "key"
	byLogin = "token"
)

// credentialMetrics count what credentials came to, and log why one was
// refused; not each one, as anybody can send them.
type credentialMetrics struct {
	seen    metric.Int64Counter
	fetches metric.Int64Counter
	good    map[string]metric.MeasurementOption
	log     *slog.Logger
	some    rate.Sometimes
}

func newCredentialMetrics(m metric.Meter, log *slog.Logger) (*credentialMetrics, error) {
	seen, err1 := m.Int64Counter("amends_gateway_credentials_total", metric.WithDescription("Credentials of requests by channel, where one was found, and outcome."))
	fetches, err2 := m.Int64Counter("amends_gateway_key_fetches_total", metric.WithDescription("Questions to a channel's issuer for its keys, by outcome."))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("make the credentials' metrics: %w", err)
	}
	out := &credentialMetrics{
		seen: seen, fetches: fetches, good: map[string]metric.MeasurementOption{}, log: log,
		some: rate.Sometimes{First: 10, Interval: time.Second},
	}
	for _, by := range []string{byKey, byLogin} {
		out.good[by] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", "accepted"), attribute.String("kind", by)))
	}
	return out, nil
}

func (m *credentialMetrics) accepted(ctx context.Context, by string) { m.seen.Add(ctx, 1, m.good[by]) }

// refused takes reasons and configured names only: no label is of a caller's
// making.
func (m *credentialMetrics) refused(ctx context.Context, channel string, reason identity.Reason) {
	m.seen.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", string(reason)), attribute.String("channel", channel)))
	m.some.Do(func() {
		m.log.LogAttrs(ctx, slog.LevelInfo, "credential refused", slog.String("channel", channel), slog.String("reason", string(reason)))
	})
}

func (m *credentialMetrics) fetched(ctx context.Context, channel string, err error) {
	outcome := "read"
	if err != nil {
		outcome = "failed"
	}
	m.fetches.Add(ctx, 1, metric.WithAttributes(attribute.String("channel", channel), attribute.String("outcome", outcome)))
}
