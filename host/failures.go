package host

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/hookhost/hookhost/chain"
)

// failures counts the calls of stages that came to no verdict.
type failures struct{ calls metric.Int64Counter }

func newFailures(m metric.Meter) (failures, error) {
	calls, err := m.Int64Counter("hookhost.stage.failures",
		metric.WithDescription("Calls of a stage that came to no verdict, by cause."), metric.WithUnit("{call}"))
	return failures{calls}, err
}

func (f failures) count(s chain.Step) {
	f.calls.Add(context.Background(), 1, metric.WithAttributes(attribute.String("stage", s.Stage),
		attribute.String("hook", s.Hook.String()), attribute.String("cause", s.Cause.String()), attribute.String("policy", s.Policy.String())))
}
