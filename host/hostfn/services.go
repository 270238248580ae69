package hostfn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/hookhost/hookhost/host/hostfn/ahead"
	"github.com/hookhost/hookhost/host/hostfn/learn"
	"github.com/hookhost/hookhost/host/hostfn/outbox"
	"github.com/hookhost/hookhost/store"
)

// Services is what stands behind the functions, for all stages of a host. It
// is made once and shared by pointer. Run has to be running for what is put off
// to be written and for leases to outlive their expiry; Close ends it.
type Services struct {
	Store        store.Store
	StoreTimeout time.Duration // of one call to the store; 0 is 50 ms
	// Away reports whether Store is known to be away; nil is not known. A write
	// that fails again and again while it is not is given up.
	Away func() bool
	// Local takes over the limits of stages with Stage.Local while Store is
	// away. Each is divided by Replicas. Nil if there is none.
	Local    store.Store
	Replicas func() int64 // live processes on the store; nil is one

	Plans Plans
	Log   *slog.Logger // nil is slog.Default
	Meter metric.Meter // nil measures nothing

	Leases Leases

	once        sync.Once
	outbox      *outbox.Outbox
	ahead       *ahead.Pool
	learner     *learn.Learner
	instruments *instruments
	unregister  func() error
	open        openCharges
	sequence    atomic.Int64
	fallbacks   atomic.Int64
}

// Fallbacks counts the calls to the store that came back unavailable, so that
// a guest was told so or the local share was used.
func (s *Services) Fallbacks() int64 { return s.fallbacks.Load() }

// Run does what goes on behind the calls until ctx is done: it renews leases,
// writes what was put off, gives back slices that nobody needs, and exchanges
// what was learned.
func (s *Services) Run(ctx context.Context) {
	s.start()
	var all sync.WaitGroup
	all.Go(func() { s.Leases.Run(ctx, s.logger()) })
	all.Go(func() { s.outbox.Run(ctx) })
	all.Go(func() { s.ahead.Run(ctx) })
	all.Go(func() { s.learner.Run(ctx) })
	all.Wait()
}

// Drain writes what was put off, such as settlements, and fails if the store
// is away.
func (s *Services) Drain(ctx context.Context) error {
	s.start()
	return s.outbox.Drain(ctx)
}

// Close gives back what was taken ahead and drains, once Run is over, for as
// long as ctx allows. Its error says how much had to be given up. The stores
// stay open.
func (s *Services) Close(ctx context.Context) error {
	s.start()
	s.ahead.Close()
	return errors.Join(s.outbox.Close(ctx), s.unregister())
}

// start makes, at the first use, what works behind the calls.
func (s *Services) start() {
	s.once.Do(func() {
		s.outbox = outbox.New(outbox.Options{
			Timeout: s.storeTimeout(), Log: s.logger(), Away: s.Away, Lost: func(e outbox.Entry) { s.instruments.drop(e.Kind) },
		})
		s.ahead = ahead.New(sliceWriter{s})
		s.learner = learn.New(s.Store, s.storeTimeout(), s.logger())
		var err error
		if s.instruments, s.unregister, err = instrument(s.Meter, s.outbox.Pending); err != nil {
			s.logger().Error("some of the metrics are missing", "error", err)
		}
		s.Leases.lost = s.leaseLost
	})
}

// leaseLost tells operators that more can go on at once than a limit allows.
func (s *Services) leaseLost(l store.Lease, reason string) {
	s.instruments.lease(reason)
	s.logger().Warn("lease lost before its run gave it back", "limit", l.Limit, "run", l.Member, "reason", reason)
}

func (s *Services) replicas() int64 {
	if s.Replicas == nil {
		return 1
	}
	return s.Replicas()
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
