package wasm

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/hookhost/hookhost/host/hostfn"
)

// fakeInstance is dirty after each call, as the pool sees it.
type fakeInstance struct {
	of     *fakes
	lent   atomic.Bool
	dirty  bool
	reason discardReason // what reset says
	closed bool
}

func (f *fakeInstance) call(context.Context, *hostfn.Call) (uint64, error) { return 0, nil }
func (*fakeInstance) burned() int64                                        { return 0 }

func (f *fakeInstance) used() bool   { return f.dirty }
func (f *fakeInstance) held() uint64 { return 100 }

func (f *fakeInstance) reset() discardReason {
	if f.of.panics {
		panic("reset")
	}
	time.Sleep(f.of.resetTakes)
	f.of.resets.Add(1)
	if f.reason == "" {
		f.dirty = false
	}
	return f.reason
}

func (f *fakeInstance) close() {
	if f.closed {
		panic("closed twice")
	}
	f.closed = true
	f.of.open.Add(-1)
}

// fakes makes fake instances and counts them.
type fakes struct {
	resetTakes time.Duration
	fails      error
	panics     bool
	made       atomic.Int64
	open       atomic.Int64
	most       atomic.Int64
	resets     atomic.Int64
}

func (f *fakes) create(context.Context) (instance, error) {
	if f.panics {
		panic("create")
	}
	if f.fails != nil {
		return nil, f.fails
	}
	f.made.Add(1)
	open := f.open.Add(1)
	for most := f.most.Load(); open > most && !f.most.CompareAndSwap(most, open); most = f.most.Load() {
	}
	return &fakeInstance{of: f}, nil
}

func (f *fakes) pool(size int) *pool {
	return newPool(size, f.create, newMetrics(slog.New(slog.DiscardHandler)).of("probe", nil))
}

// lent gets an instance that must be clean and nobody else's.
func lent(t testing.TB, p *pool) *fakeInstance {
	t.Helper()
	in, err := p.get(t.Context())
	require.NoError(t, err)
	f := in.(*fakeInstance)
	require.False(t, f.dirty)
	require.False(t, f.closed)
	f.dirty = true
	return f
}

func TestPoolGrowsOnDemandUpToItsSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := f.pool(3)
		defer p.close(func() {})
		assert.Zero(t, f.made.Load())
		a, b, c := lent(t, p), lent(t, p), lent(t, p)
		assert.Equal(t, load{size: 3, busy: 3}, p.load())

		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		begin := time.Now()
		_, err := p.get(ctx)
		require.ErrorIs(t, err, errNoSlot)
		assert.Equal(t, 250*time.Millisecond, time.Since(begin), "no longer than the call may take")
		p.put(a)
		p.put(b)
		p.put(c)
		synctest.Wait()
		assert.Equal(t, load{size: 3, bytes: 300}, p.load())
		assert.EqualValues(t, 3, f.made.Load())
	})
}

func TestPoolServesEverybodyWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := f.pool(1)
		defer p.close(func() {})
		in := lent(t, p)
		var served atomic.Int64
		for range 5 {
			go func() {
				in := lent(t, p)
				served.Add(1)
				p.put(in)
			}()
		}
		synctest.Wait()
		assert.Equal(t, load{size: 1, busy: 1, waiting: 5}, p.load())
		p.put(in)
		synctest.Wait()
		assert.EqualValues(t, 5, served.Load())
		assert.Zero(t, p.load().waiting)
		assert.EqualValues(t, 1, f.made.Load())
	})
}

func TestPoolResetsBehindTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{resetTakes: time.Millisecond}
		p := f.pool(1)
		defer p.close(func() {})
		begin := time.Now()
		p.put(lent(t, p))
		assert.Zero(t, time.Since(begin), "the call does not wait for the reset")
		synctest.Wait()
		time.Sleep(2 * time.Millisecond)
		begin = time.Now()
		p.put(lent(t, p))
		assert.Zero(t, time.Since(begin), "nor does the next one, later")
		in := lent(t, p)
		assert.Equal(t, time.Millisecond, time.Since(begin), "one that comes before does")
		assert.EqualValues(t, 2, f.resets.Load(), "once after each call")
		p.put(in)
	})
}

func TestPoolReplacesWhatCannotBeReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := f.pool(1)
		defer p.close(func() {})
		for range 3 {
			in := lent(t, p)
			in.reason = discardGrown
			waited := make(chan struct{})
			go func() {
				defer close(waited)
				p.put(lent(t, p))
			}()
			synctest.Wait()
			p.put(in)
			<-waited
			assert.True(t, in.closed)
			synctest.Wait()
			assert.EqualValues(t, 1, f.open.Load())
		}
		in := lent(t, p)
		in.reason = discardBroken
		p.put(in)
		synctest.Wait()
		assert.Equal(t, load{}, p.load(), "with nobody waiting, no other is made")
	})
}

func TestPoolPassesOnThePlaceOfOneThatCouldNotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := f.pool(1)
		defer p.close(func() {})
		in := lent(t, p)
		in.reason = discardBroken
		f.fails = errors.New("no memory")
		var failed atomic.Int64
		for range 3 {
			go func() {
				if _, err := p.get(t.Context()); errors.Is(err, f.fails) {
					failed.Add(1)
				}
			}()
		}
		synctest.Wait()
		p.put(in)
		synctest.Wait()
		assert.EqualValues(t, 3, failed.Load())
		f.fails = nil
		p.put(lent(t, p))
	})
}

func TestPoolLosesNoPlaceToAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{panics: true}
		p := f.pool(1)
		defer p.close(func() {})
		assert.Panics(t, func() { _, _ = p.get(t.Context()) })
		f.panics = false
		in := lent(t, p)

		f.panics = true
		p.put(in)
		synctest.Wait() // it is put back, which panics
		assert.True(t, in.closed)
		assert.Equal(t, load{}, p.load())
		f.panics = false
		p.put(lent(t, p))
	})
}

func TestPoolShrinksToOneAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := f.pool(8)
		defer p.close(func() {})
		var all []*fakeInstance
		for range 5 {
			all = append(all, lent(t, p))
		}
		for _, in := range all {
			p.put(in)
		}
		time.Sleep(30 * time.Second)
		a, b := lent(t, p), lent(t, p)
		p.put(a)
		p.put(b)
		time.Sleep(45 * time.Second)
		assert.EqualValues(t, 2, p.load().size, "those that were used stay for now")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, load{size: 1, bytes: 100}, p.load())
		assert.EqualValues(t, 1, f.open.Load())
	})
}

func TestPoolClosesWhatIsLentWhenItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		p := f.pool(2)
		a, b := lent(t, p), lent(t, p)
		p.put(a)
		got := make(chan error, 1)
		c := lent(t, p)
		go func() {
			_, err := p.get(t.Context())
			got <- err
		}()
		synctest.Wait()
		p.close(func() {})
		require.ErrorIs(t, <-got, errClosed)
		_, err := p.get(t.Context())
		require.ErrorIs(t, err, errClosed)
		p.put(b)
		p.put(c)
		assert.Zero(t, f.open.Load())
		assert.Zero(t, p.load())
	})
}

func TestPoolIsSharedByManyGoroutines(t *testing.T) {
	f := &fakes{}
	p := f.pool(4)
	var all sync.WaitGroup
	var full atomic.Int64
	for g := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 0))
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(300))*time.Microsecond)
				in, err := p.get(ctx)
				cancel()
				if err != nil {
					full.Add(1)
					continue
				}
				lent := in.(*fakeInstance)
				assert.True(t, lent.lent.CompareAndSwap(false, true), "lent to one only")
				assert.False(t, lent.dirty)
				lent.dirty = random.IntN(4) > 0
				if random.IntN(8) == 0 {
					lent.reason = discardGrown
				}
				lent.lent.Store(false)
				p.put(in)
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, f.most.Load(), int64(4))
	assert.Zero(t, p.load().busy)
	assert.Zero(t, p.load().waiting)
	p.close(func() {})
	assert.Zero(t, f.open.Load())
	t.Logf("%d instances made, %d calls found the pool full", f.made.Load(), full.Load())
}

func TestPoolGaugesAndCounters(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	all := newMetrics(slog.New(slog.DiscardHandler))
	f := &fakes{}
	p, other := newPool(2, f.create, all.of("probe", meter)), newPool(2, f.create, all.of("probe", meter))
	a, b := lent(t, p), lent(t, p)
	lent(t, other)
	waits := make(chan struct{})
	go func() {
		defer close(waits)
		_, _ = p.get(t.Context())
	}()
	require.Eventually(t, func() bool { return p.load().waiting == 1 }, time.Second, time.Millisecond)
	assert.Equal(t, map[string]int64{"hookhost.pool.size": 3, "hookhost.pool.busy": 3, "hookhost.pool.waiting": 1, "hookhost.pool.bytes": 0},
		collected(t, reader), "the pools of one stage are added up")

	p.put(a)
	<-waits
	b.reason = discardGrown
	p.put(b)
	require.Eventually(t, func() bool { return p.load().size == 1 }, time.Second, time.Millisecond)
	assert.Equal(t, map[string]int64{
		"hookhost.pool.size": 2, "hookhost.pool.busy": 2, "hookhost.pool.waiting": 0, "hookhost.pool.bytes": 0,
		"hookhost.pool.resets": 1, "hookhost.pool.discards/grown": 1,
	}, collected(t, reader))

	p.close(func() {})
	other.close(func() {})
	assert.Equal(t, map[string]int64{"hookhost.pool.resets": 1, "hookhost.pool.discards/grown": 1}, collected(t, reader),
		"nothing is shown of what is closed")
}

// collected reads all that is measured of the stage "probe".
func collected(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	read := map[string]int64{}
	points := func(name string, list []metricdata.DataPoint[int64]) {
		for _, point := range list {
			stage, _ := point.Attributes.Value("stage")
			require.Equal(t, "probe", stage.AsString())
			key := name
			if reason, has := point.Attributes.Value("reason"); has {
				key += "/" + reason.AsString()
			}
			read[key] = point.Value
		}
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				points(m.Name, data.DataPoints)
			case metricdata.Sum[int64]:
				points(m.Name, data.DataPoints)
			}
		}
	}
	return read
}

func TestPoolWakesTheNextWhereOneGaveUp(t *testing.T) {
	f := &fakes{}
	p := f.pool(1)
	defer p.close(func() {})
	in := lent(t, p)
	in.dirty = false
	first, next := make(chan struct{}, 1), make(chan struct{}, 1)
	p.line(first, false)
	p.line(next, false)
	p.put(in)
	require.Len(t, first, 1)
	require.Empty(t, next)
	p.leave(first)
	assert.Len(t, next, 1)
}
