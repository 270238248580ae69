package wasm

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// budgetWithin is a budget that has begun.
func budgetWithin(t *testing.T, d time.Duration) (*budget, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	b := &budget{}
	b.begin(ctx)
	return b, cancel
}

func TestBudgetSlicesAdaptToTheSpeedOfTheGuest(t *testing.T) {
	for name, perMicrosecond := range map[string]int64{"slow": 40, "as expected": 1000, "fast": 15_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := budgetWithin(t, time.Second)
				slice := b.slice
				for range 12 {
					time.Sleep(time.Duration(slice/perMicrosecond) * time.Microsecond)
					slice = b.tick(-1)
				}
				assert.InDelta(t, float64(100*perMicrosecond), float64(slice), float64(5*perMicrosecond))
				b.end(slice)
				assert.EqualValues(t, firstSlice, b.begin(t.Context()), "what a call taught is for that call alone")
			})
		})
	}
}

func TestBudgetOneSlowSliceDoesNotMakeTheNextOnesTiny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := budgetWithin(t, time.Minute)
		slice := b.slice
		time.Sleep(time.Second) // the machine did something else
		assert.Equal(t, slice/4, b.tick(-1))
	})
}

func TestBudgetNoSliceIsLargeBecauseFuelWasBurnedForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := budgetWithin(t, time.Minute)
		for range 20 { // host functions that cost much and take nothing
			b.enter()
			b.bytes = 1 << 30
			b.tick(b.given - b.leave())
		}
		assert.LessOrEqual(t, b.slice, int64(firstSlice))

		b, _ = budgetWithin(t, time.Minute)
		for range 20 { // code that does
			b.tick(-1)
		}
		assert.EqualValues(t, mostSlice, b.slice)
	})
}

// Compiled code is not preempted: beside guests that spin, the only processor is
// given to others when a guest asks for its next slice.
func TestBudgetATickLetsOthersIn(t *testing.T) {
	b := newBench(t, "loop").pool(2).within(300 * time.Millisecond).loads()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var spinning sync.WaitGroup
	for range b.cfg.Pool {
		spinning.Go(func() { _, _ = b.stage.Call(t.Context(), event("a")) })
	}
	turns, began := 0, time.Now()
	for time.Since(began) < 250*time.Millisecond {
		runtime.Gosched()
		turns++
	}
	spinning.Wait()
	// Some hundred microseconds for two slices. Left to the scheduler's own
	// clock it is 20 ms, so that there were a dozen.
	assert.Greater(t, turns, 60)
	t.Logf("%d turns beside %d guests", turns, b.cfg.Pool)
}

func TestBudgetLooksAtTheClockInEveryHostCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := budgetWithin(t, time.Second)
		b.enter()
		time.Sleep(time.Second)
		require.PanicsWithValue(t, ErrDeadline, b.enter)
	})
}

func TestBudgetCountsWhatWasBurned(t *testing.T) {
	b, _ := budgetWithin(t, time.Minute)
	first := b.slice
	second := b.tick(-50)
	b.end(second - 200)
	assert.Equal(t, first+50+200, b.fuel)
}

func TestBudgetEndsACall(t *testing.T) {
	ended := func(t *testing.T, with error, f func()) {
		t.Helper()
		require.PanicsWithValue(t, with, f)
	}
	t.Run("out of time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, _ := budgetWithin(t, time.Second)
			time.Sleep(time.Second - time.Microsecond)
			b.tick(-1)
			time.Sleep(time.Microsecond)
			ended(t, ErrDeadline, func() { b.tick(-1) })
		})
	})
	t.Run("the caller went away", func(t *testing.T) {
		b, cancel := budgetWithin(t, time.Minute)
		b.tick(-1)
		cancel()
		ended(t, ErrCancelled, func() { b.tick(-1) })
	})
	t.Run("host calls", func(t *testing.T) {
		b, _ := budgetWithin(t, time.Minute)
		for range maxHostCalls {
			b.enter()
		}
		ended(t, ErrHostCalls, b.enter)
	})
	t.Run("while bytes are moved", func(t *testing.T) {
		b, cancel := budgetWithin(t, time.Minute)
		b.enter()
		cancel()
		ended(t, ErrCancelled, func() {
			for range 16 {
				b.charge(64 << 10)
			}
		})
	})
}

func TestBudgetHostCallsBurnFuel(t *testing.T) {
	b := newBench(t, "hundred_texts").pool(1).loads()
	g := b.all()[0]
	ctx, cancel := context.WithTimeout(t.Context(), b.cfg.Timeout)
	defer cancel()
	_, err := g.call(ctx, b.stage.services.NewCall(ctx, &b.stage.facts, event("a")))
	require.NoError(t, err)
	assert.Equal(t, 100, g.budget.hostCalls)
	assert.InDelta(t, 100*(hostCallFuel+4000/fuelBytes), g.budget.fuel, 5000)
}
