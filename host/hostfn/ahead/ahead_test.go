package ahead_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/host/hostfn/ahead"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/storetest"
)

var (
	quota = store.Bucket{Units: 10, Per: time.Second, Burst: 100}
	calls = ahead.Bucket{Owner: store.Owner{Kind: store.OwnerGlobal}, Limit: "calls"}
)

// fleet is some processes on one store.
type fleet struct {
	t     require.TestingT
	clock *storetest.ManualClock
	store store.Store
	asked atomic.Int64
}

func newFleet(t require.TestingT) *fleet {
	clock := storetest.NewClock()
	return &fleet{t: t, clock: clock, store: memory.New(clock)}
}

// process takes slices of a size.
type process struct {
	*ahead.Pool
	fleet *fleet
	slice int64
}

func (f *fleet) process(slice int64) *process {
	return &process{fleet: f, slice: slice, Pool: ahead.New(writer{f})}
}

// writer tells the store at once.
type writer struct{ *fleet }

func (w writer) Settle(r store.Reservation, used int64) {
	_, err := w.store.Settle(context.Background(), r, used)
	assert.NoError(w.t, err)
}

func (w writer) Move(r store.Reservation, used, drawn int64) store.Reservation {
	to := r
	to.ID += "+"
	_, err := w.store.Admit(context.Background(), store.Admission{ID: to.ID, Owner: to.Owner, Items: []store.Item{
		{Limit: to.Limit, Take: &store.Take{Bucket: to.Bucket, Cost: drawn, MaxWait: math.MaxInt64, Reserve: time.Hour}},
	}})
	assert.NoError(w.t, err)
	w.Settle(r, used)
	return to
}

// get takes a slice, as the host does.
func (p *process) get() (store.Reservation, int64, error) {
	r := store.Reservation{ID: fmt.Sprint("slice-", p.fleet.asked.Add(1)), Owner: calls.Owner, Limit: calls.Limit, Bucket: quota}
	d, err := p.fleet.store.Admit(context.Background(), store.Admission{ID: r.ID, Owner: r.Owner, Items: []store.Item{
		{Limit: r.Limit, Take: &store.Take{Bucket: quota, Cost: p.slice, Reserve: time.Hour}},
	}})
	if err == nil && d.Kind != store.Now {
		err = ahead.ErrThin
	}
	return r, p.slice, err
}

// take is nil where the process has to ask for itself.
func (p *process) take(cost int64) *ahead.Draw {
	d, err := p.Take(context.Background(), calls, cost, p.get)
	if err != nil {
		require.ErrorIs(p.fleet.t, err, ahead.ErrThin)
	}
	return d
}

// takeAll takes units one by one until there are none.
func (p *process) takeAll() (n int64) {
	for p.take(1) != nil {
		n++
	}
	return n
}

func (f *fleet) balance() int64 {
	n, err := f.store.Balance(context.Background(), calls.Owner, calls.Limit, quota)
	require.NoError(f.t, err)
	return n
}

func TestATakeAsksOncePerSlice(t *testing.T) {
	f := newFleet(t)
	p := f.process(20)
	for range 40 {
		require.NotNil(t, p.take(1))
	}
	assert.EqualValues(t, 2, f.asked.Load())
	assert.EqualValues(t, 60, f.balance())
	require.NotNil(t, p.take(1))
	assert.EqualValues(t, 40, f.balance(), "charged when it was taken, not when it is drawn")
}

func TestABucketThatHoldsNoSliceIsLeftAloneForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		p := f.process(30)
		assert.EqualValues(t, 90, p.takeAll())
		asked := f.asked.Load()
		assert.Nil(t, p.take(1))
		assert.Equal(t, asked, f.asked.Load())
		f.clock.Advance(10 * time.Second)
		time.Sleep(150 * time.Millisecond)
		assert.NotNil(t, p.take(1))
	})
}

func TestWhatACallDidNotUseIsDrawnAgain(t *testing.T) {
	f := newFleet(t)
	p := f.process(20)
	for range 10 {
		d := p.take(15)
		require.NotNil(t, d)
		d.Settle(1)
		d.Settle(15) // once
	}
	assert.EqualValues(t, 2, f.asked.Load(), "6 takes fit the first slice: 15 are left after 5 units")
	p.Close()
	assert.EqualValues(t, 90, f.balance(), "what was used, and nothing more")
}

func TestWhatACallUsedBeyondItsChargeIsCharged(t *testing.T) {
	f := newFleet(t)
	p := f.process(20)
	first, second := p.take(10), p.take(10)
	first.Settle(95)
	assert.EqualValues(t, 80, f.balance(), "the slice has an open take")
	third := p.take(10)
	require.NotNil(t, third, "out of the next slice")
	assert.EqualValues(t, 100-95-10-20, f.balance(), "the first slice says what it came to, but for what is drawn")
	second.Settle(10)
	assert.EqualValues(t, -25, f.balance(), "the first slice came to 105")
	third.Keep()
	p.Close()
	assert.EqualValues(t, -15, f.balance())
}

// running is a process of a fleet whose pool runs as long as the test.
func running(t *testing.T, slice int64) (*fleet, *process) {
	f := newFleet(t)
	p := f.process(slice)
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { p.Run(ctx) })
	t.Cleanup(func() { cancel(); over.Wait() })
	return f, p
}

func TestASliceThatNobodyNeedsGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := running(t, 20)
		p.take(1).Keep()
		assert.EqualValues(t, 80, f.balance())
		time.Sleep(2 * ahead.Life)
		assert.EqualValues(t, 99, f.balance())
		assert.False(t, p.Holds(calls, 1), "it serves no more")
	})
}

func TestACallThatLastsKeepsItsOwnChargeAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := running(t, 20)
		p.take(1).Keep()
		long, longer := p.take(4), p.take(2)
		time.Sleep(2 * ahead.Life)
		assert.EqualValues(t, 100-1-4-2, f.balance())
		long.Settle(9)
		time.Sleep(2 * ahead.Life)
		assert.EqualValues(t, 100-1-9-2, f.balance(), "one that ended does not wait for the other")
		longer.Settle(0)
		assert.EqualValues(t, 100-1-9, f.balance())
	})
}

func TestCloseSettlesWhatIsOpenAsItWasCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p := running(t, 20)
		old := p.take(3)
		time.Sleep(2 * ahead.Life)
		young := p.take(5)
		p.Close()
		assert.EqualValues(t, 100-3-5, f.balance())
		old.Settle(1)
		young.Settle(1)
		assert.EqualValues(t, 100-3-5, f.balance(), "too late")
	})
}

func TestAProcessThatDiesKeepsNoMoreThanItsSlice(t *testing.T) {
	f := newFleet(t)
	require.NotNil(t, f.process(20).take(1))
	assert.EqualValues(t, 80, f.process(20).takeAll())
}

// The overshoot: processes that filled their hands before draw them at once,
// on top of what the bucket holds, and no more than that.
func TestTheOvershootIsASlicePerProcess(t *testing.T) {
	const processes, slice = 4, 20
	f := newFleet(t)
	var all []*process
	for range processes {
		p := f.process(slice)
		require.NotNil(t, p.take(1))
		all = append(all, p)
	}
	f.clock.Advance(time.Minute)
	require.EqualValues(t, quota.Burst, f.balance())
	var granted int64
	for _, p := range all {
		granted += p.takeAll()
	}
	assert.Greater(t, granted, quota.Burst, "there is an overshoot")
	assert.Equal(t, quota.Burst+processes*(slice-1), granted)
}

// Whatever the processes do, in no span of time they grant more than the
// bucket and a slice for each, and in the end the bucket was charged with what
// they used.
func TestTheBoundHoldsForAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFleet(t)
		var all []*process
		var slices int64
		for range rapid.IntRange(1, 4).Draw(t, "processes") {
			p := f.process(rapid.Int64Range(1, 30).Draw(t, "slice"))
			slices += p.slice
			all = append(all, p)
		}
		type grant struct{ at, cost int64 }
		var grants []grant
		var now, used int64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "later") {
				ms := rapid.Int64Range(1, 3000).Draw(t, "ms")
				now += ms
				f.clock.Advance(time.Duration(ms) * time.Millisecond)
			}
			p := rapid.SampledFrom(all).Draw(t, "process")
			cost := rapid.Int64Range(1, p.slice).Draw(t, "cost")
			d := p.take(cost)
			if d == nil {
				continue
			}
			d.Keep()
			used += cost
			grants = append(grants, grant{now, cost})
		}
		for i := range grants {
			var sum int64
			for _, g := range grants[i:] {
				sum += g.cost
				bound := quota.Burst + (g.at-grants[i].at)*quota.Units/quota.Per.Milliseconds() + 1 + slices
				if sum > bound {
					t.Fatalf("%d granted in %d ms, the bound is %d", sum, g.at-grants[i].at, bound)
				}
			}
		}
		if now == 0 {
			for _, p := range all {
				p.Close()
			}
			if got := f.balance(); got != quota.Burst-used {
				t.Fatalf("%d used, and the bucket holds %d", used, got)
			}
		}
	})
}

func TestOneFetchesForAll(t *testing.T) {
	f := newFleet(t)
	p := f.process(50)
	begun, goOn := make(chan struct{}), make(chan struct{})
	var fetches atomic.Int64
	get := func() (store.Reservation, int64, error) {
		if fetches.Add(1) == 1 {
			close(begun)
		}
		<-goOn
		return p.get()
	}
	var crowd sync.WaitGroup
	var served atomic.Int64
	for range 50 {
		crowd.Go(func() {
			if d, err := p.Take(context.Background(), calls, 1, get); err == nil && d != nil {
				served.Add(1)
			}
		})
	}
	<-begun
	close(goOn)
	crowd.Wait()
	assert.EqualValues(t, 50, served.Load())
	assert.EqualValues(t, 1, fetches.Load())
}

func TestAFailedFetchFailsAllWhoWait(t *testing.T) {
	p := newFleet(t).process(50)
	get := func() (store.Reservation, int64, error) { return store.Reservation{}, 0, store.ErrUnavailable }
	d, err := p.Take(t.Context(), calls, 1, get)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Nil(t, d)

	begun, goOn := make(chan struct{}), make(chan struct{})
	var fetching sync.WaitGroup
	fetching.Go(func() {
		_, _ = p.Take(context.Background(), calls, 1, func() (store.Reservation, int64, error) {
			close(begun)
			<-goOn
			return get()
		})
	})
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Take(ctx, calls, 1, p.get)
	require.ErrorIs(t, err, context.Canceled, "who goes away waits for nobody")
	close(goOn)
	fetching.Wait()
	require.NotNil(t, p.take(1), "the next one asks again")
}
