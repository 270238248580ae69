package hostfn_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/internal/fake"
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
	assert.Equal(t, 2, b.store.Calls()-calls, "the settlement, and the admission behind it")
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

func TestACallerWhoWentAwayIsNoStoreThatDid(t *testing.T) {
	b := newBench(t, "kv:cache")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.store.Slow(true)
	assert.EqualValues(t, abi.Unavailable, b.services.NewCall(ctx, b.stage, b.ev).KVGet("cache", "k", nil))
	b.store.Slow(false)
	assert.EqualValues(t, abi.NotFound, b.call().KVGet("cache", "k", nil))
}
