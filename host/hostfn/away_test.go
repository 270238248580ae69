package hostfn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/internal/fake"
)

func TestATurnPaysForADeadStoreOnce(t *testing.T) {
	const timeout = 50 * time.Millisecond
	for _, local := range []bool{false, true} {
		b := newBench(t, "limit:turn", "limit:tokens", "limit:runs", "kv:cache", "usage:write", "usage:read", "claim:jobs")
		b.services.StoreTimeout, b.stage.Local = timeout, local
		d := b.take(b.call(), "tokens", 100)
		require.EqualValues(t, abi.OK, b.call().LimitSettle(d.id, 50), "to be flushed by who comes next")
		b.store.Slow(true)
		calls := b.store.Calls()

		begin, out := time.Now(), make([]byte, abi.DecisionSize)
		for range 10 {
			want := abi.Unavailable
			if local {
				want = abi.DecisionSize
			}
			assert.EqualValues(t, want, b.call().LimitAdmit("turn\ntokens\nruns", out))
			assert.EqualValues(t, want, b.call().LimitTake("tokens", 10, out))
			for range 3 {
				assert.EqualValues(t, abi.Unavailable, b.call().KVGet("cache", "k", out))
				assert.EqualValues(t, abi.Unavailable, b.call().UsageAdd("n", 1))
				assert.EqualValues(t, abi.Unavailable, b.call().Claim("jobs", "k", 1000, out))
			}
			b.at(abi.BeforeModel)
		}
		assert.Less(t, time.Since(begin), 4*timeout, "110 calls")
		assert.Equal(t, 2, b.store.Calls()-calls, "the settlement, and the admission behind it")
		assert.EqualValues(t, 110, b.services.Fallbacks(), "each was told")

		b.store.Slow(false)
		b.run = fake.NewScope("run-2")
		assert.EqualValues(t, abi.NotFound, b.at(abi.BeforeModel).call().KVGet("cache", "k", out), "the next turn asks again")
	}
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
