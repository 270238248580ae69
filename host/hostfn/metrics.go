package hostfn

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// instruments are what operators see of limits. No attribute is of a user:
// limits, plans and stages are as many as the files name.
type instruments struct {
	decisions metric.Int64Counter
	waits     metric.Float64Histogram
	lost      metric.Int64Counter // leases
	dropped   metric.Int64Counter // writes
	fallbacks metric.Int64Counter
}

// instrument makes the instruments, with pending as the number of the writes
// that wait. What it returns beside them lets go of that.
func instrument(m metric.Meter, pending func() int) (*instruments, func() error, error) {
	if m == nil {
		m = noop.NewMeterProvider().Meter("")
	}
	in := &instruments{}
	var gauge metric.Int64ObservableGauge
	var registered metric.Registration
	var faults [7]error
	in.decisions, faults[0] = m.Int64Counter("hookhost.limit.decisions",
		metric.WithDescription("Decisions about a limit."))
	in.waits, faults[1] = m.Float64Histogram("hookhost.limit.wait", metric.WithUnit("s"),
		metric.WithDescription("How long calls that had to wait for a limit were told to wait."),
		metric.WithExplicitBucketBoundaries(.01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60))
	in.lost, faults[2] = m.Int64Counter("hookhost.lease.lost",
		metric.WithDescription("Leases that lapsed before their run gave them back."))
	in.dropped, faults[3] = m.Int64Counter("hookhost.outbox.dropped",
		metric.WithDescription("Writes to the store that were given up."))
	in.fallbacks, faults[4] = m.Int64Counter("hookhost.store.fallbacks",
		metric.WithDescription("Calls that found the store away."))
	gauge, faults[5] = m.Int64ObservableGauge("hookhost.outbox.pending",
		metric.WithDescription("Writes to the store that wait."))
	registered, faults[6] = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(gauge, int64(pending()))
		return nil
	}, gauge)
	letGo := func() error { return nil }
	if registered != nil {
		letGo = registered.Unregister
	}
	return in, letGo, errors.Join(faults[:]...)
}

func (in *instruments) lease(reason string) { add(in.lost, attribute.String("reason", reason)) }

func (in *instruments) drop(kind string) { add(in.dropped, attribute.String("kind", kind)) }

func (in *instruments) fallback(stage string) { add(in.fallbacks, attribute.String("stage", stage)) }

func add(c metric.Int64Counter, attributes ...attribute.KeyValue) {
	c.Add(context.Background(), 1, metric.WithAttributes(attributes...))
}
