package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/breaker"
	"github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Engine {
		clock := storetest.NewClock()
		return storetest.Engine{Store: breaker.New(memory.New(clock), breaker.Options{}), Clock: clock}
	})
}

// flaky is a store of which each call ends as the test says.
type flaky struct {
	store.Store
	mu    sync.Mutex
	calls int
	end   func(ctx context.Context) error
}

func (f *flaky) ends(err error) { f.does(func(context.Context) error { return err }) }

func (f *flaky) does(end func(ctx context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = end
}

func (f *flaky) call(ctx context.Context) error {
	f.mu.Lock()
	f.calls++
	end := f.end
	f.mu.Unlock()
	return end(ctx)
}

func (f *flaky) SetOverride(ctx context.Context, _ store.Override) error { return f.call(ctx) }

func (f *flaky) Free(ctx context.Context, _ store.Lease) (bool, error) { return true, f.call(ctx) }

func (f *flaky) Renew(ctx context.Context, _ []store.Lease) ([]bool, error) {
	return []bool{false}, f.call(ctx)
}

func (f *flaky) Held(ctx context.Context, _ store.Owner, _ string) (int64, error) {
	return 0, f.call(ctx)
}

// bench is a breaker before a flaky store, and what it told.
type bench struct {
	store.Store
	*flaky
	told []string
}

// storeTimeout is what the store takes for a call.
const storeTimeout = 200 * time.Millisecond

func newBench() *bench {
	b := &bench{flaky: &flaky{Store: memory.New(nil)}}
	b.ends(nil)
	b.Store = breaker.New(b.flaky, breaker.Options{Timeout: storeTimeout, Switched: func(away bool, cause error) {
		b.told = append(b.told, fmt.Sprintf("away %v: %v", away, cause))
	}})
	return b
}

var ann = store.Owner{Kind: store.OwnerUser, App: "shop", User: "ann"}

// writes calls the store so often, and gives what the last call ended with.
func (b *bench) writes(ctx context.Context, times int) (err error) {
	for range times {
		err = b.Store.SetOverride(ctx, store.Override{User: "ann"})
	}
	return err
}

func (b *bench) reads(ctx context.Context) error {
	_, err := b.Store.Held(ctx, ann, "runs")
	return err
}

func (b *bench) frees(ctx context.Context) error {
	_, err := b.Store.Free(ctx, store.Lease{Owner: ann, Limit: "runs", Member: "run"})
	return err
}

// asked counts the calls that reached the store since the last time.
func (b *bench) asked() int {
	n := b.calls
	b.calls = 0
	return n
}

var errGone = fmt.Errorf("redis: %w: connection refused", store.ErrUnavailable)

func TestAStoreThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.ends(errGone)

		err := b.writes(t.Context(), breaker.Failures-1)
		require.ErrorIs(t, err, errGone)
		assert.Empty(t, b.told, "not yet")
		require.ErrorIs(t, b.writes(t.Context(), 1), errGone, "the last one is its own error still")
		assert.Equal(t, breaker.Failures, b.asked())

		err = b.writes(t.Context(), 100)
		require.ErrorIs(t, err, store.ErrUnavailable)
		assert.ErrorContains(t, err, "not asked")
		require.ErrorIs(t, b.reads(t.Context()), store.ErrUnavailable)
		assert.Zero(t, b.asked())
		assert.Equal(t, []string{"away true: redis: store unavailable: connection refused"}, b.told, "once")
	})
}

func TestOneCallSeesWhetherTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.ends(errGone)
		_ = b.writes(t.Context(), breaker.Failures)
		b.asked()

		for range 3 {
			time.Sleep(breaker.ProbeEvery + time.Millisecond)
			_ = b.writes(t.Context(), 10)
			assert.Equal(t, 1, b.asked(), "a probe, and no more")
		}
		assert.Len(t, b.told, 1, "a probe that fails is no switch")

		b.ends(nil)
		time.Sleep(breaker.ProbeEvery + time.Millisecond)
		require.NoError(t, b.writes(t.Context(), 10))
		assert.Equal(t, 10, b.asked())
		assert.Equal(t, "away false: <nil>", b.told[1])
		assert.Len(t, b.told, 2)
	})
}

func TestOnlyOneCallIsTheProbeWhileItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.ends(errGone)
		_ = b.writes(t.Context(), breaker.Failures)
		b.asked()
		b.does(func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil })
		time.Sleep(breaker.ProbeEvery + time.Millisecond)

		var probe sync.WaitGroup
		probe.Go(func() { assert.NoError(t, b.writes(t.Context(), 1)) })
		synctest.Wait()
		began := time.Now()
		require.ErrorIs(t, b.writes(t.Context(), 10), store.ErrUnavailable)
		assert.Zero(t, time.Since(began), "nobody waits for the probe")
		probe.Wait()

		assert.Equal(t, 1, b.asked())
		require.NoError(t, b.writes(t.Context(), 1))
	})
}

// What a call ends with, and whether so many of them mean that the store is
// away.
func TestWhatCountsAsAFailure(t *testing.T) {
	timed := func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, d)
	}
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("redis: %w: %w", store.ErrUnavailable, ctx.Err())
	}
	for name, c := range map[string]struct {
		end  func(ctx context.Context) error
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		away bool
	}{
		"unavailable":                          {end: func(context.Context) error { return errGone }, away: true},
		"the deadline":                         {end: hangs, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) { return timed(ctx, time.Second) }, away: true},
		"a deadline that the engine passes on": {end: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) { return timed(ctx, time.Second) }, away: true},
		"a deadline that was over before":      {end: hangs, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) { return timed(ctx, -1) }},
		"the caller went away": {end: hangs, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}},
		"a number out of range": {end: func(context.Context) error { return fmt.Errorf("cost: %w", store.ErrBadNumber) }},
		"a key in the way": {end: func(context.Context) error {
			return fmt.Errorf("redis: %w: records: %w", store.ErrUnavailable, store.ErrInTheWay)
		}},
		"a command that this server's user may not run": {end: func(context.Context) error {
			return fmt.Errorf("redis: %w: %w: NOPERM", store.ErrUnavailable, store.ErrOnlyThis)
		}},
		"a lost claim":   {end: func(context.Context) error { return store.ErrFenced }},
		"something else": {end: func(context.Context) error { return errors.New("what is this") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.does(c.end)
				for range breaker.Failures {
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					if c.ctx != nil {
						ctx, cancel = c.ctx(ctx)
					}
					require.Error(t, b.writes(ctx, 1))
					cancel()
				}
				assert.Equal(t, c.away, len(b.told) == 1)
			})
		})
	}
}

// What is left to a caller at the end of its own time is no measure of the
// store.
func TestACallInAHurrySaysNothingWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		hangs := func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("redis: %w: %w", store.ErrUnavailable, ctx.Err())
		}
		within := func(d time.Duration, times int) {
			for range times {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				require.Error(t, b.writes(ctx, 1))
			}
		}
		b.does(hangs)
		within(storeTimeout/2, 3*breaker.Failures)
		assert.Empty(t, b.told, "out of time")
		b.does(func(context.Context) error {
			return fmt.Errorf("redis: %w: read: %w", store.ErrUnavailable, os.ErrDeadlineExceeded)
		})
		within(storeTimeout/2, breaker.Failures)
		assert.Empty(t, b.told, "and noticed before its context")

		b.does(hangs)
		within(storeTimeout-storeTimeout/100, breaker.Failures-1)
		within(storeTimeout/2, 1)
		assert.Empty(t, b.told, "not yet")
		within(storeTimeout, 1)
		require.Len(t, b.told, 1, "those that had all of it, but for the way here")

		time.Sleep(breaker.ProbeEvery + time.Millisecond)
		b.asked()
		b.ends(nil)
		within(storeTimeout/2, 1)
		assert.Zero(t, b.asked(), "the probe is one that has its time")
		ctx, cancel := context.WithTimeout(t.Context(), storeTimeout)
		defer cancel()
		require.NoError(t, b.writes(ctx, 1))
		assert.Len(t, b.told, 2)
	})
}

func TestACallInAHurryThatIsToldOfAnOutageCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.ends(errGone)
		ctx, cancel := context.WithTimeout(t.Context(), storeTimeout/2)
		defer cancel()
		require.Error(t, b.writes(ctx, breaker.Failures))
		assert.Len(t, b.told, 1)
	})
}

func TestAnAnswerInBetweenStartsTheCountAgain(t *testing.T) {
	b := newBench()
	for range 10 {
		b.ends(errGone)
		_ = b.writes(t.Context(), breaker.Failures-1)
		b.ends(nil)
		require.NoError(t, b.writes(t.Context(), 1))
	}
	assert.Empty(t, b.told)
}

// A server that became a replica answers what writes nothing, and one that has
// no memory left also takes back what it gave.
func TestWhatDoesNotShowThatTheStoreIsBack(t *testing.T) {
	for name, call := range map[string]func(*bench, context.Context) error{"a read": (*bench).reads, "a lease given back": (*bench).frees} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				for range breaker.Failures {
					b.ends(errGone)
					_ = b.writes(t.Context(), 1)
					b.ends(nil)
					require.Equal(t, len(b.told) == 0, call(b, t.Context()) == nil)
				}
				require.Len(t, b.told, 1, "those in between change nothing")
				time.Sleep(breaker.ProbeEvery + time.Millisecond)

				b.asked()
				require.ErrorIs(t, call(b, t.Context()), store.ErrUnavailable)
				assert.Zero(t, b.asked())
				b.ends(errGone)
				require.ErrorIs(t, b.writes(t.Context(), 1), errGone, "the place of the probe is free")
				b.ends(nil)
				time.Sleep(breaker.ProbeEvery + time.Millisecond)
				require.NoError(t, b.writes(t.Context(), 1))
				assert.Len(t, b.told, 2)
			})
		})
	}
}

func TestARenewalOfWhatLapsedShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.ends(errGone)
		_ = b.writes(t.Context(), breaker.Failures)
		b.ends(nil)
		time.Sleep(breaker.ProbeEvery + time.Millisecond)

		_, err := b.Store.Renew(t.Context(), []store.Lease{{}})
		require.NoError(t, err)
		assert.Len(t, b.told, 1, "not back")
		require.NoError(t, b.writes(t.Context(), 1))
		assert.Len(t, b.told, 2)
	})
}

func TestAPanicIsAFailureAndFreesThePlaceOfTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.does(func(context.Context) error { panic("broken") })
		for range breaker.Failures {
			assert.Panics(t, func() { _ = b.writes(t.Context(), 1) })
		}
		require.Len(t, b.told, 1)
		time.Sleep(breaker.ProbeEvery + time.Millisecond)
		assert.Panics(t, func() { _ = b.writes(t.Context(), 1) })
		b.ends(nil)
		time.Sleep(breaker.ProbeEvery + time.Millisecond)
		require.NoError(t, b.writes(t.Context(), 1))
		assert.Len(t, b.told, 2)
	})
}

func TestCloseReachesAStoreThatIsAway(t *testing.T) {
	b := newBench()
	b.ends(errGone)
	_ = b.writes(t.Context(), breaker.Failures)
	require.NoError(t, b.Store.Close(t.Context()))
	_, err := b.flaky.Store.Held(t.Context(), ann, "runs")
	assert.ErrorIs(t, err, store.ErrUnavailable, "closed")
}

// A call to a store that is away has to cost next to nothing.
func TestWhileAwayTheAnswerComesWithinMicroseconds(t *testing.T) {
	cost := testing.Benchmark(BenchmarkAway)
	assert.Less(t, time.Duration(cost.NsPerOp()), 50*time.Microsecond, "even on a machine with much else to do")
}

func BenchmarkAway(b *testing.B) {
	s := newBench()
	s.ends(errGone)
	ctx := context.Background()
	_ = s.writes(ctx, breaker.Failures)
	for b.Loop() {
		if err := s.writes(ctx, 1); !errors.Is(err, store.ErrUnavailable) {
			b.Fatal(err)
		}
	}
}
