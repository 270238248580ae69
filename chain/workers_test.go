package chain_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

// deep needs more stack than a waiting run may keep.
func deep(n int) (sum byte) {
	var frame [1024]byte
	frame[n%len(frame)] = 1
	if n > 0 {
		sum = deep(n - 1)
	}
	return sum + frame[n%len(frame)]
}

func TestRunsThatWaitKeepNoDeepStack(t *testing.T) {
	const runs = 200
	waits := responder("deep").at(abi.BeforeModel, func(context.Context, *abi.Event) (abi.Verdict, error) {
		deep(100)
		return abi.Verdict{Kind: abi.Wait, Wait: time.Hour}, nil
	})
	clock := &sleeps{}
	ledger := chain.NewLedger(version(t, "v1", waits), clock, chain.Tracer{})
	before := stacks()
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range runs {
		waiting.Go(func() {
			r := ledger.Begin(abi.Event{})
			op, _ := r.Open(abi.OpModel, abi.Event{})
			assert.True(t, op.Dispatch(ctx, abi.BeforeModel, event(abi.BeforeModel, "question")).Cancelled)
			r.Finish(context.Background(), true)
		})
	}
	require.Eventually(t, func() bool { return clock.now.Load() == runs }, 10*time.Second, time.Millisecond)
	assert.Less(t, (stacks()-before)/runs, uint64(40<<10), "bytes of stack of each, of which the stage needs 100,000")
	cancel()
	waiting.Wait()
	ledger.Close(context.Background())
}

// sleeps is the real clock, and knows how many wait on it.
type sleeps struct {
	chain.WallClock
	now atomic.Int64
}

func (s *sleeps) Sleep(ctx context.Context, d time.Duration) error {
	s.now.Add(1)
	return s.WallClock.Sleep(ctx, d)
}

func stacks() uint64 {
	var m runtime.MemStats
	runtime.GC() // which halves a stack that is hardly used, at most once
	runtime.ReadMemStats(&m)
	return m.StackInuse
}

func TestAStageThatEndsItsGoroutineHasNotContinued(t *testing.T) {
	w := chainOf(t, responder("gone").at(abi.BeforeModel, func(context.Context, *abi.Event) (abi.Verdict, error) {
		runtime.Goexit()
		return abi.Verdict{}, nil
	}))
	r := w.begin()
	op, _ := r.Open(abi.OpModel, abi.Event{})
	assert.Panics(t, func() { op.Dispatch(context.Background(), abi.BeforeModel, event(abi.BeforeModel, "question")) })
	r.Finish(context.Background(), true)
}
