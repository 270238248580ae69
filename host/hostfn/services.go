package hostfn

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookhost/hookhost/host/hostfn/outbox"
	"github.com/hookhost/hookhost/store"
)

// Services is what stands behind the functions, for all stages of a host. It
// is made once and shared by pointer. Run has to be running, and Close ends
// it.
type Services struct {
	Store        store.Store
	StoreTimeout time.Duration // of one call to the store; 0 is 50 ms
	// Local takes over the limits of stages with Stage.Local while Store is
	// away. Each is divided by Replicas. Nil if there is none.
	Local    store.Store
	Replicas int64

	Plans Plans
	Log   *slog.Logger // nil is slog.Default

	Leases Leases

	once      sync.Once
	later     *outbox.Outbox
	open      openCharges
	sequence  atomic.Int64
	fallbacks atomic.Int64
}

// Fallbacks counts the calls to the store that came back unavailable, so that
// a guest was told so or the local share was used.
func (s *Services) Fallbacks() int64 { return s.fallbacks.Load() }

// Run does what goes on behind the calls until ctx is done: it renews leases
// and writes what was put off.
func (s *Services) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { s.Leases.Run(ctx, s.logger()) })
	all.Go(func() { s.outbox().Run(ctx) })
	all.Wait()
}

// Drain writes what was put off, such as settlements, and fails if the store
// is away.
func (s *Services) Drain(ctx context.Context) error { return s.outbox().Drain(ctx) }

// Close drains once Run is over, for as long as ctx allows. Its error says how
// much had to be given up. The stores stay open.
func (s *Services) Close(ctx context.Context) error { return s.outbox().Close(ctx) }

func (s *Services) outbox() *outbox.Outbox {
	s.once.Do(func() {
		s.later = outbox.New(outbox.Options{Timeout: s.storeTimeout(), Log: s.logger(), Lost: func(outbox.Entry) {}})
	})
	return s.later
}

func (s *Services) logger() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

func (s *Services) storeTimeout() time.Duration {
	if s.StoreTimeout <= 0 {
		return 50 * time.Millisecond
	}
	return s.StoreTimeout
}
