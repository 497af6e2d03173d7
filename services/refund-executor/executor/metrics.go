package executor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

type metrics struct {
	results, refusals, races, registry metric.Int64Counter
}

func newMetrics(m metric.Meter) (metrics, error) {
	var out metrics
	var err error
	if out.results, err = m.Int64Counter("amends_executor_results", metric.WithDescription("Answers to tasks, by class.")); err != nil {
		return out, fmt.Errorf("metrics: %w", err)
	}
	if out.refusals, err = m.Int64Counter("amends_executor_refusals", metric.WithDescription("Actions refused by the executor's own checks, by reason.")); err != nil {
		return out, fmt.Errorf("metrics: %w", err)
	}
	if out.races, err = m.Int64Counter("amends_executor_races", metric.WithDescription("Effect entries decided again after a lost race or acknowledgement.")); err != nil {
		return out, fmt.Errorf("metrics: %w", err)
	}
	if out.registry, err = m.Int64Counter("amends_executor_registry_failures", metric.WithDescription("Times the approver registry could not be used.")); err != nil {
		return out, fmt.Errorf("metrics: %w", err)
	}
	return out, nil
}

func (m metrics) answered(ctx context.Context, c amendsv1.EffectClass) {
	m.results.Add(ctx, 1, metric.WithAttributes(attribute.String("class", className(c))))
}

func (m metrics) refused(ctx context.Context, reason string) {
	m.refusals.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}
