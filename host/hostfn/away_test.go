package hostfn_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
	inmemory "github.com/hookhost/hookhost/store/memory"
)

func TestATurnPaysForADeadStoreOnce(t *testing.T) {
	for name, told := range map[string]abi.Code{"closed": abi.Unavailable, "local": abi.DecisionSize} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { paysOnce(t, name == "local", told) })
		})
	}
}

// paysOnce plays a turn on a store that hangs. told is what an admission comes
// to.
func paysOnce(t *testing.T, local bool, told abi.Code) {
	b := newBench(t, "limit:turn", "limit:tokens", "limit:runs", "kv:cache", "usage:write", "usage:read", "claim:jobs")
	b.services.StoreTimeout, b.stage.Local = 50*time.Millisecond, local
	d := b.take(b.call(), "tokens", 100)
	require.EqualValues(t, abi.OK, b.call().LimitSettle(d.id, 50), "to be written before the next admission")
	b.store.Slow(true)
	calls := b.store.Calls()

	begin, out := time.Now(), make([]byte, abi.DecisionSize)
	for range 10 {
		assert.EqualValues(t, told, b.call().LimitAdmit("turn\ntokens\nruns", out))
		assert.EqualValues(t, told, b.call().LimitTake("tokens", 10, out))
		for range 3 {
			assert.EqualValues(t, abi.Unavailable, b.call().KVGet("cache", "k", out))
			assert.EqualValues(t, abi.Unavailable, b.call().UsageAdd("n", 1))
			assert.EqualValues(t, abi.Unavailable, b.call().Claim("jobs", "k", 1000, out))
		}
	}
	assert.Equal(t, b.services.StoreTimeout, time.Since(begin), "one timeout for 110 calls")
	assert.Equal(t, 1, b.store.Calls()-calls, "the settlement: the admission behind it is not made")
	assert.EqualValues(t, 110, b.services.Fallbacks(), "each was told")
	assert.Equal(t, 1, strings.Count(b.log.String(), "level=DEBUG msg=\"store unavailable\" stage=probe"), "once a run, for those who look closely")
	assert.Equal(t, 1, strings.Count(b.log.String(), "store unavailable\" stage"))

	b.store.Slow(false)
	assert.EqualValues(t, abi.Unavailable, b.call().KVGet("cache", "k", out))
	time.Sleep(time.Second)
	assert.EqualValues(t, abi.NotFound, b.call().KVGet("cache", "k", out), "a long turn asks again")
	b.store.Down(true)
	assert.EqualValues(t, abi.Unavailable, b.call().KVGet("cache", "k", out))
	b.store.Down(false)
	b.run = fake.NewScope("run-2")
	assert.EqualValues(t, abi.NotFound, b.at(abi.BeforeModel).call().KVGet("cache", "k", out), "so does the next one")
}

// slowly is a store that takes its time, within the timeout.
type slowly struct {
	store.Store
	each time.Duration
}

func (s slowly) wait(ctx context.Context) error {
	select {
	case <-time.After(s.each):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

func (s slowly) Admit(ctx context.Context, a store.Admission) (store.Decision, error) {
	if err := s.wait(ctx); err != nil {
		return store.Decision{}, err
	}
	return s.Store.Admit(ctx, a)
}

func (s slowly) Settle(ctx context.Context, r store.Reservation, actual int64) (int64, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.Store.Settle(ctx, r, actual)
}

func (s slowly) Free(ctx context.Context, l store.Lease) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	return s.Store.Free(ctx, l)
}

func TestAUsersTurnsBehindEachOtherOnASlowStore(t *testing.T) {
	for _, each := range []time.Duration{5, 20, 28, 35, 49} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, "limit:turn", "limit:tokens", "limit:runs")
			b.services.StoreTimeout = 50 * time.Millisecond
			b.services.Store = slowly{inmemory.New(nil), each * time.Millisecond}
			b.plans["runs"] = hostfn.Limit{Plan: "free", Cap: &store.Cap{Max: 1, Expires: 30 * time.Second}}
			b.plans["turn"] = hostfn.Limit{Plan: "free", Bucket: bucket(100)}
			ctx, cancel := context.WithCancel(t.Context())
			var over sync.WaitGroup
			over.Go(func() { b.services.Run(ctx) })
			for i := range 10 {
				b.run, b.op = fake.NewScope(fmt.Sprint("run-", i)), fake.NewScope(fmt.Sprint("op-", i))
				require.Equal(t, abi.Admitted, b.admit(b.at(abi.BeforeRun).call(), "turn\nruns").kind, "turn %d, %d ms", i, each)
				d := b.take(b.at(abi.BeforeModel).call(), "tokens", 5)
				require.Equal(t, abi.Admitted, d.kind)
				require.EqualValues(t, abi.OK, b.at(abi.AfterModel).call().LimitSettle(d.id, 7))
				b.run.End(abi.Ending{Reason: abi.ReasonDone})
			}
			assert.Zero(t, b.services.Fallbacks())
			cancel()
			over.Wait()
		})
	}
}

func TestAnAdmissionDoesNotWaitForALongLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "limit:turn", "limit:tokens")
		b.services.StoreTimeout = 50 * time.Millisecond
		b.services.Store = slowly{inmemory.New(nil), 40 * time.Millisecond}
		var pending []decision
		for range 30 {
			pending = append(pending, b.take(b.call(), "tokens", 5))
		}
		for _, d := range pending {
			require.EqualValues(t, abi.OK, b.call().LimitRelease(d.id))
		}
		begin := time.Now()
		assert.Equal(t, abi.Admitted, b.admit(b.call(), "turn").kind)
		assert.LessOrEqual(t, time.Since(begin), 5*b.services.StoreTimeout)
	})
}

func TestACallerWhoWentAwayIsNoStoreThatDid(t *testing.T) {
	b := newBench(t, "kv:cache")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.store.Slow(true)
	assert.EqualValues(t, abi.Unavailable, b.services.NewCall(ctx, b.stage, b.ev).KVGet("cache", "k", nil))
	b.store.Slow(false)
	assert.EqualValues(t, abi.NotFound, b.call().KVGet("cache", "k", nil))
}

func TestACallerWithoutTimeSpoilsNoFetchForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sliced(t, "kv:cache")
		b.services.StoreTimeout = 50 * time.Millisecond
		b.services.Store = slowly{inmemory.New(nil), 10 * time.Millisecond}
		out := make([]byte, abi.DecisionSize)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		var calls sync.WaitGroup
		calls.Go(func() {
			hurried := make([]byte, abi.DecisionSize)
			assert.EqualValues(t, abi.Unavailable, b.services.NewCall(ctx, b.stage, b.ev).LimitTake("calls:app", 1, hurried))
		})
		time.Sleep(time.Millisecond)
		other := *b.ev
		other.Run, other.Op = fake.NewScope("run-2"), fake.NewScope("op-2")
		neighbour := func() *hostfn.Call { return b.services.NewCall(t.Context(), b.stage, &other) }
		assert.EqualValues(t, abi.DecisionSize, neighbour().LimitTake("calls:app", 1, out))
		assert.EqualValues(t, abi.NotFound, neighbour().KVGet("cache", "color", out), "nor is the store away for it")
		calls.Wait()
	})
}

// cannot is a store that answers and cannot read values.
type cannot struct{ store.Store }

func (cannot) GetValue(context.Context, store.ValueKey) ([]byte, bool, error) {
	return nil, false, fmt.Errorf("redis: %w: %w", store.ErrUnavailable, store.ErrOnlyThis)
}

func TestOneThingThatCannotBeDoneIsNoOutageForTheRun(t *testing.T) {
	b := newBench(t, "kv:cache", "limit:turn")
	b.services.Store = cannot{inmemory.New(nil)}
	out := make([]byte, abi.DecisionSize)
	assert.EqualValues(t, abi.Unavailable, b.call().KVGet("cache", "color", out))
	assert.EqualValues(t, abi.DecisionSize, b.call().LimitTake("turn", 1, out))
	assert.Zero(t, b.services.Fallbacks())
	assert.Contains(t, b.log.String(), "store cannot do this one thing")
}
