package host

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/breaker"
)

// guard puts a breaker before a store that can be away, and an alarm on it.
// Timeout is what the store takes for a call. Away says how it is now; each switch is also put into the channel, if there is room.
func guard(s store.Store, timeout time.Duration, m metric.Meter, log *slog.Logger, switches chan<- struct{}) (guarded store.Store, away func() bool, err error) {
	a, err := newAlarm(m, log)
	if err != nil {
		return nil, nil, err
	}
	return breaker.New(s, breaker.Options{Timeout: min(timeout, beatTimeout), Switched: func(away bool, cause error) {
		a.now.Store(away)
		a.switched(away, cause)
		select {
		case switches <- struct{}{}:
		default:
		}
	}}), a.now.Load, nil
}

// alarm tells operators that the store went away and that it is back: once
// each in the log and in a counter, and in a gauge that is 1 meanwhile.
type alarm struct {
	log      *slog.Logger
	switches metric.Int64Counter
	away     metric.Int64Gauge
	since    time.Time
	now      atomic.Bool // away
}

func newAlarm(m metric.Meter, log *slog.Logger) (*alarm, error) {
	a := &alarm{log: log}
	var err error
	a.switches, err = m.Int64Counter("hookhost.store.switches",
		metric.WithDescription("How often the store went away or came back."), metric.WithUnit("{switch}"))
	if err != nil {
		return nil, err
	}
	a.away, err = m.Int64Gauge("hookhost.store.away",
		metric.WithDescription("1 while the store is away and the stages' on_store_error decides, else 0."))
	if err != nil {
		return nil, err
	}
	a.away.Record(context.Background(), 0)
	return a, nil
}

// switched is called once for each switch, one at a time.
func (a *alarm) switched(away bool, cause error) {
	ctx := context.Background()
	to, now := "back", int64(0)
	if away {
		to, now = "away", 1
		a.since = time.Now()
		a.log.Error("the store is away: each stage goes by its on_store_error until it is back", "error", cause)
	} else {
		a.log.Warn("the store is back", "away", time.Since(a.since).Round(time.Millisecond))
	}
	a.switches.Add(ctx, 1, metric.WithAttributes(attribute.String("to", to)))
	a.away.Record(ctx, now)
}
