package host

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/hookhost/hookhost/store"
)

// Guard is what a host puts before a store that can be away.
func Guard(s store.Store, m metric.MeterProvider, log *slog.Logger) (store.Store, error) {
	guarded, _, err := guard(s, 50*time.Millisecond, Options{Meter: m}.meter(), log, nil)
	return guarded, err
}

// AwaitRetired returns when every chain that was replaced is closed.
func (h *Host) AwaitRetired() { h.retiring.Wait() }

// Process is one of those that share a store.
type Process struct{ of *processes }

// NewProcess makes one that is counted until it was silent for so long.
func NewProcess(s store.Store, configured int64, expires time.Duration) Process {
	return Process{newProcesses(s, configured, expires, nil)}
}

// Run tells that it lives until ctx is done.
func (p Process) Run(ctx context.Context) { p.of.run(ctx, func(error) {}) }

// Count is how many it has seen last.
func (p Process) Count() int64 { return p.of.count() }

// Leave says that it is over.
func (p Process) Leave(ctx context.Context) error { return p.of.leave(ctx) }
