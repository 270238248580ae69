package meter

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestSpinningGuests: compiled code is not preempted, so a guest that never
// ends would hold up the collector, and with it the process. A tick is Go code,
// where the scheduler gets in: the host goes on, on one processor or all. It
// waits for a guest's time on the processor, some 10 ms, unless the tick yields.
func TestSpinningGuests(t *testing.T) {
	for name, c := range map[string]struct {
		processors, collections int
		yield                   bool
	}{
		"one processor":               {1, 2, false},
		"all processors":              {runtime.NumCPU(), 2, false},
		"one processor, tick yields":  {1, 20, true},
		"all processors, tick yields": {runtime.NumCPU(), 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.processors))
			const limit = 15 * time.Second // a hang ends, and fails
			begin := time.Now()
			stop := spin(t, 4, c.yield, begin.Add(limit))
			collect(c.collections)
			took := time.Since(begin)
			stop()
			assert.Less(t, took, limit)
			t.Logf("%d collections in %v", c.collections, took)
		})
	}
}

// spin lets guests run until it is stopped, or it is the time.
func spin(t *testing.T, guests int, yield bool, until time.Time) (stop func()) {
	var over atomic.Bool
	var wait sync.WaitGroup
	for range guests {
		m := started(t, fixture(t, "shapes"), endless())
		ctx := withBudget(context.WithoutCancel(t.Context()), &budget{
			slice: 100_000, most: endless().most, yield: yield,
			asked: func() bool { return over.Load() || time.Now().After(until) },
		})
		wait.Go(func() {
			var err error
			for err == nil { // an i32 of rounds is not for ever
				enough(m)
				_, err = m.ExportedFunction("fuel_loop").Call(ctx, 1<<32-1)
			}
			assert.ErrorIs(t, err, errOver)
		})
	}
	return func() {
		over.Store(true)
		wait.Wait()
	}
}

// collect is a host that makes garbage, and has it collected.
func collect(times int) {
	var kept [][]byte
	for range times {
		for range 100 {
			kept = append(kept, make([]byte, 10_000))
		}
		kept = kept[len(kept)/2:]
		runtime.GC()
	}
}
