package hostfn_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/store"
	inmemory "github.com/hookhost/hookhost/store/memory"
)

var app = store.Owner{Kind: store.OwnerApp, App: "app"}

// sliced is a process on a store with a cap on calls, and one on tokens, that
// all users of the app share.
func sliced(t testing.TB, grants ...string) *bench {
	b := newBench(t, append(grants, "limit:calls:app", "limit:spend:app", "limit:all:global")...)
	b.plans["calls:app"] = hostfn.Limit{Plan: "app", Bucket: bucket(100), Slice: 20}
	b.plans["spend:app"] = hostfn.Limit{
		Plan: "app", Bucket: bucket(1000), Slice: 500,
		Estimate: hostfn.Estimate{By: hostfn.Fixed, Units: 100}, TurnEstimate: 200,
	}
	b.plans["all:global"] = hostfn.Limit{Plan: "global", Bucket: bucket(2)}
	return b
}

func TestASlicedLimitAsksTheStoreOncePerSlice(t *testing.T) {
	b := sliced(t)
	for range 40 {
		require.Equal(t, abi.Admitted, b.admit(b.call(), "calls:app").kind)
	}
	assert.Equal(t, 2, b.store.Calls())
	assert.Equal(t, map[string]float64{"limit=calls mode=enforce outcome=allowed plan=app scope=app": 40}, b.decisions())
}

func TestSeveralProcessesShareASlicedLimit(t *testing.T) {
	var fleet []*bench
	for range 3 {
		b := sliced(t)
		if len(fleet) > 0 {
			b.store = fleet[0].store
			b.services.Store = b.store
		}
		fleet = append(fleet, b)
	}
	admitted := 0
	for range 50 {
		for _, b := range fleet {
			if b.admit(b.call(), "calls:app").kind == abi.Admitted {
				admitted++
			}
		}
	}
	assert.Equal(t, 100, admitted, "nothing came back meanwhile, so nothing is granted beyond the burst")
}

func TestASlicedReservationIsSettledWithItsSlice(t *testing.T) {
	b := sliced(t)
	first := b.take(b.call(), "spend:app", abi.EstimateOfPlan)
	second := b.take(b.call(), "spend:app", abi.EstimateOfPlan)
	b.take(b.call(), "spend:app", abi.EstimateOfPlan)
	require.NotZero(t, first.id)
	assert.EqualValues(t, 500, b.balance(b.store, app, "spend"), "a slice was taken")
	require.EqualValues(t, abi.OK, b.call().LimitSettle(first.id, 450))
	assert.EqualValues(t, abi.NotFound, b.call().LimitSettle(first.id, 450), "once")
	require.EqualValues(t, abi.OK, b.call().LimitRelease(second.id))
	b.op.End(abi.Ending{Reason: abi.ReasonEnded}) // of the third nobody knows
	assert.EqualValues(t, 500, b.balance(b.store, app, "spend"), "the store hears of it with the end of the slice")
	require.NoError(t, b.services.Close(t.Context()))
	assert.EqualValues(t, 1000-450-100, b.balance(b.store, app, "spend"))
	assert.Zero(t, b.store.Open())
}

func TestALongCallKeepsNoMoreOfItsSliceThanItsCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sliced(t)
		shared := inmemory.New(nil)
		b.services.Store = shared
		yearly := store.Bucket{Units: 1, Per: 365 * 24 * time.Hour, Burst: 600}
		b.plans["calls:app"] = hostfn.Limit{Plan: "app", Bucket: &yearly, Slice: 100}
		ctx, cancel := context.WithCancel(t.Context())
		var over sync.WaitGroup
		over.Go(func() { b.services.Run(ctx) })
		balance := func() int64 {
			n, err := shared.Balance(t.Context(), app, "calls", yearly)
			require.NoError(t, err)
			return n
		}
		var open []decision
		for i := range 9 {
			d := b.take(b.call(), "calls:app", 2)
			require.Equal(t, abi.Admitted, d.kind, "call %d", i)
			open = append(open, d)
			time.Sleep(6 * time.Second)
		}
		time.Sleep(10 * time.Minute)
		assert.EqualValues(t, 600-9*2, balance(), "nine calls go on")
		require.EqualValues(t, abi.OK, b.call().LimitSettle(open[0].id, 7))
		require.EqualValues(t, abi.OK, b.call().LimitRelease(open[1].id))
		time.Sleep(time.Second)
		assert.EqualValues(t, 600-7*2-7, balance())
		assert.Empty(t, b.measured("hookhost.outbox.dropped"))
		cancel()
		over.Wait()
	})
}

func TestASliceServesTheRoomThatARunAsksFor(t *testing.T) {
	b := sliced(t)
	require.Equal(t, abi.Admitted, b.take(b.call(), "spend:app", 100).kind)
	calls := b.store.Calls()
	assert.Equal(t, abi.Admitted, b.admit(b.call(), "spend:app").kind)
	assert.Equal(t, calls, b.store.Calls())
	require.Equal(t, abi.Admitted, b.take(b.call(), "spend:app", 350).kind)
	assert.Equal(t, abi.Admitted, b.admit(b.call(), "spend:app").kind, "the slice has no room, the bucket has")
	assert.Greater(t, b.store.Calls(), calls)
}

func TestATakeThatNoSliceHoldsAsksForItself(t *testing.T) {
	b := sliced(t)
	assert.Equal(t, abi.Admitted, b.take(b.call(), "spend:app", 800).kind)
	assert.EqualValues(t, 200, b.balance(b.store, app, "spend"), "exactly that")
	assert.Equal(t, abi.Admitted, b.take(b.call(), "spend:app", 150).kind, "the bucket holds no slice any more")
	assert.Equal(t, decision{kind: abi.Denied, wait: 50_000}, b.take(b.call(), "spend:app", 100))
	b.op.End(abi.Ending{Reason: abi.ReasonError})
	assert.EqualValues(t, 1000, b.balance(b.store, app, "spend"))
}

func TestASlicedTakeIsUndoneInItsSlice(t *testing.T) {
	b := sliced(t, "limit:turn")
	for range 4 {
		b.admit(b.call(), "turn\ncalls:app\nall:global")
	}
	require.NoError(t, b.services.Close(t.Context()))
	assert.EqualValues(t, 98, b.balance(b.store, app, "calls"), "two came through, two were denied by the global limit")
	assert.EqualValues(t, 3, b.balance(b.store, user, "turn"))
}

func TestASliceInHandOutlivesTheStore(t *testing.T) {
	b := sliced(t)
	require.Equal(t, abi.Admitted, b.admit(b.call(), "calls:app").kind)
	b.store.Down(true)
	for range 19 {
		require.Equal(t, abi.Admitted, b.admit(b.call(), "calls:app").kind, "it is paid for")
	}
	assert.Zero(t, b.services.Fallbacks())
	begin, out := time.Now(), make([]byte, abi.DecisionSize)
	assert.EqualValues(t, abi.Unavailable, b.call().LimitAdmit("calls:app", out))
	b.stage.Local = true
	require.Equal(t, abi.Admitted, b.admit(b.call(), "calls:app").kind, "out of the local share")
	assert.Less(t, time.Since(begin), 5*time.Second)
	left, err := b.local.Balance(t.Context(), app, "calls", *bucket(50))
	require.NoError(t, err)
	assert.EqualValues(t, 49, left, "half of 100, less one")
	assert.EqualValues(t, 2, b.services.Fallbacks())
}
