package wasm

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// metrics are what operators see of the pools of a runtime. Those of one name,
// as there are while a manifest is exchanged for another, are added up.
type metrics struct {
	log *slog.Logger

	made     sync.Once
	meter    metric.Meter
	gauges   [4]metric.Int64ObservableGauge // in the order of load
	resets   metric.Int64Counter
	discards metric.Int64Counter
	rests    metric.Int64Counter

	mu       sync.Mutex
	pools    map[*pool]string // with the stage's name
	observed metric.Registration
}

func newMetrics(log *slog.Logger) *metrics { return &metrics{log: log, pools: map[*pool]string{}} }

// of gives the metrics of a stage. The first meter is that of all.
func (m *metrics) of(stage string, meter metric.Meter) *poolMetrics {
	m.made.Do(func() {
		if meter == nil {
			meter = noop.NewMeterProvider().Meter("")
		}
		m.meter = meter
		m.complain(m.instrument())
	})
	return &poolMetrics{of: m, stage: stage, attribute: attribute.String("stage", stage)}
}

func (m *metrics) instrument() error {
	var faults [7]error
	for i, g := range []struct{ name, unit, says string }{
		{"hookhost.pool.size", "", "Instances of a stage."},
		{"hookhost.pool.busy", "", "Instances of a stage that a call has."},
		{"hookhost.pool.waiting", "", "Calls that wait for an instance."},
		{"hookhost.pool.bytes", "By", "Memory that the idle instances of a stage have to themselves."},
	} {
		m.gauges[i], faults[i] = m.meter.Int64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.says))
	}
	m.resets, faults[4] = m.meter.Int64Counter("hookhost.pool.resets",
		metric.WithDescription("Instances that were put back to their image."))
	m.discards, faults[5] = m.meter.Int64Counter("hookhost.pool.discards",
		metric.WithDescription("Instances that were closed: they grew, exited or broke, or nobody needed them."))
	m.rests, faults[6] = m.meter.Int64Counter("hookhost.stage.rests",
		metric.WithDescription("Times that a stage was left alone because it did nothing but crash."))
	return errors.Join(faults[:]...)
}

func (m *metrics) complain(err error) {
	if err != nil {
		m.log.Error("some of the metrics are missing", "error", err)
	}
}

func (m *metrics) observe(_ context.Context, o metric.Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	sums := map[string]load{}
	for p, stage := range m.pools {
		sum, l := sums[stage], p.load()
		sums[stage] = load{sum.size + l.size, sum.busy + l.busy, sum.waiting + l.waiting, sum.bytes + l.bytes}
	}
	for stage, l := range sums {
		of := metric.WithAttributes(attribute.String("stage", stage))
		for i, n := range []int64{l.size, l.busy, l.waiting, l.bytes} {
			o.ObserveInt64(m.gauges[i], n, of)
		}
	}
	return nil
}

// poolMetrics are those of one stage.
type poolMetrics struct {
	of        *metrics
	stage     string
	attribute attribute.KeyValue
}

// watch begins to show a pool.
func (m *poolMetrics) watch(p *pool) {
	all := m.of
	all.mu.Lock()
	defer all.mu.Unlock()
	all.pools[p] = m.stage
	if len(all.pools) > 1 {
		return
	}
	var err error
	all.observed, err = all.meter.RegisterCallback(all.observe, all.gauges[0], all.gauges[1], all.gauges[2], all.gauges[3])
	all.complain(err)
}

// forget ends that. With the last pool the meter is let go of.
func (m *poolMetrics) forget(p *pool) {
	all := m.of
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.pools, p)
	if len(all.pools) == 0 && all.observed != nil {
		all.complain(all.observed.Unregister())
	}
}

func (m *poolMetrics) reset() {
	m.of.resets.Add(context.Background(), 1, metric.WithAttributes(m.attribute))
}

func (m *poolMetrics) rests() {
	m.of.rests.Add(context.Background(), 1, metric.WithAttributes(m.attribute))
}

func (m *poolMetrics) discarded(reason discardReason) {
	m.of.discards.Add(context.Background(), 1, metric.WithAttributes(m.attribute, attribute.String("reason", string(reason))))
}
