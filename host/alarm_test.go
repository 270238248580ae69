package host_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/breaker"
	"github.com/hookhost/hookhost/store/memory"
)

// meter collects what is counted.
type meter struct {
	t      *testing.T
	reader *metric.ManualReader
	*metric.MeterProvider
}

func newMeter(t *testing.T) *meter {
	reader := metric.NewManualReader()
	return &meter{t: t, reader: reader, MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
}

// read gives the value of each series of an instrument, by its attributes as
// "key=value".
func (m *meter) read(name string) map[string]int64 {
	m.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(m.t, m.reader.Collect(m.t.Context(), &all))
	values := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			if one.Name != name {
				continue
			}
			var points []metricdata.DataPoint[int64]
			switch data := one.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			default:
				require.Fail(m.t, "no number", "%s is a %T", name, data)
			}
			for _, p := range points {
				var labels []string
				for _, a := range p.Attributes.ToSlice() {
					labels = append(labels, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
				}
				values[strings.Join(labels, " ")] = p.Value
			}
		}
	}
	return values
}

func TestEachSwitchIsLoggedOnceCountedAndRaisesTheAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		m, shared := newMeter(t), &gone{Store: memory.New(nil)}
		s, err := host.Guard(shared, m, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		lease := store.Lease{Owner: ownerOf("ada-the-user"), Limit: "runs", Member: "run", Cap: store.Cap{Max: 1, Expires: time.Hour}}
		_, err = s.Admit(t.Context(), store.Admission{ID: "run", Owner: lease.Owner, Items: []store.Item{{
			Limit: lease.Limit, Acquire: &store.Acquire{Cap: lease.Cap, Member: lease.Member},
		}}})
		require.NoError(t, err)
		call := func() {
			_, _ = s.Renew(t.Context(), []store.Lease{lease})
		}
		assert.Equal(t, map[string]int64{"": 0}, m.read("hookhost.store.away"), "from the start, so that there is something to alert on")

		for round := range int64(3) {
			shared.away.Store(true)
			for range 100 {
				call()
			}
			assert.Equal(t, map[string]int64{"": 1}, m.read("hookhost.store.away"))
			time.Sleep(10 * time.Second)
			call() // a probe
			shared.away.Store(false)
			time.Sleep(breaker.ProbeEvery + time.Millisecond)
			call()

			assert.Equal(t, map[string]int64{"": 0}, m.read("hookhost.store.away"))
			assert.Equal(t, map[string]int64{"to=away": round + 1, "to=back": round + 1}, m.read("hookhost.store.switches"))
		}

		assert.Equal(t, 3, strings.Count(log.String(), `level=ERROR msg="the store is away`))
		assert.Equal(t, 3, strings.Count(log.String(), `msg="the store is back" away=11.001s`))
		assert.Equal(t, 6, strings.Count(log.String(), "\n"), "and nothing else")
		assert.NotContains(t, log.String(), "ada-the-user")
	})
}
