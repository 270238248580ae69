package hostfn_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
)

func TestUsageIsRecordedOncePerModelCall(t *testing.T) {
	b := newBench(t, "usage:write").at(abi.AfterModel)
	b.ev.Usage = abi.Usage{Mask: abi.HasPrompt | abi.HasCached, Prompt: 11}
	b.ev.Elapsed, b.ev.FirstChunk = 2*time.Second, time.Second
	b.ev.State = func(key string) (any, bool) { return "key-7", key == "idempotency_key" }
	require.EqualValues(t, abi.OK, b.call().UsageRecord())
	require.EqualValues(t, abi.OK, b.call().UsageRecord())
	eleven, zero := int64(11), int64(0)
	assert.Equal(t, []store.Record{{
		ID: "op-1", Run: "run-1", Time: b.ev.Time, App: "app", User: "user", Session: "session", Agent: "agent", Model: "model",
		Plan: "free", IdempotencyKey: "key-7", Turn: true, Outcome: "done",
		Tokens:  store.Tokens{Prompt: &eleven, Cached: &zero},
		Elapsed: 2 * time.Second, FirstChunk: time.Second,
	}}, b.records(), "missing is not zero")
}

func TestTheFirstRecordOfARunIsTheTurns(t *testing.T) {
	b := newBench(t, "usage:write")
	for _, op := range []string{"run-1/op-1", "run-1/op-2", "run-2/op-1"} {
		run, _, _ := strings.Cut(op, "/")
		if run != b.run.ID() {
			b.run = fake.NewScope(run)
		}
		b.op = fake.NewScope(op)
		require.EqualValues(t, abi.OK, b.at(abi.AfterModel).call().UsageRecord())
	}
	turns := map[string]bool{}
	for _, r := range b.records() {
		turns[r.ID] = r.Turn
	}
	assert.Equal(t, map[string]bool{"run-1/op-1": true, "run-1/op-2": false, "run-2/op-1": true}, turns)
}

func TestUsageSaysHowTheCallEnded(t *testing.T) {
	for name, ev := range map[string]abi.Event{
		"done":      {Hook: abi.AfterModel},
		"answered":  {Hook: abi.AfterModel, Source: abi.SourceAnswered},
		"error":     {Hook: abi.OnModelError},
		"cancelled": {Hook: abi.OnModelError, Flags: abi.Cancelled},
		"ended":     {Hook: abi.Close, Reason: abi.ReasonEnded},
		"refused":   {Hook: abi.Close, Reason: abi.ReasonRefused},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "usage:write").at(ev.Hook)
			b.ev.Of, b.ev.Source, b.ev.Flags, b.ev.Reason = abi.OpModel, ev.Source, ev.Flags, ev.Reason
			require.EqualValues(t, abi.OK, b.call().UsageRecord())
			records := b.records()
			require.Len(t, records, 1)
			assert.Equal(t, name, records[0].Outcome)
		})
	}
}

func TestUsageIsRecordedWhereACallIsOver(t *testing.T) {
	b := newBench(t, "usage:write")
	assert.EqualValues(t, abi.NotAtThisHook, b.call().UsageRecord())
	assert.EqualValues(t, abi.NotAtThisHook, b.at(abi.Close).call().UsageRecord(), "a run is no model call")
	assert.EqualValues(t, abi.NotGranted, newBench(t, "usage:read").at(abi.AfterModel).call().UsageRecord())
	b.stage.Shadow = true
	assert.EqualValues(t, abi.OK, b.at(abi.AfterModel).call().UsageRecord())
	assert.Zero(t, b.store.Calls(), "a stage in shadow records nothing")
}

func TestCounters(t *testing.T) {
	b := newBench(t, "usage:read", "usage:write")
	c, out := b.call(), make([]byte, 8)
	require.EqualValues(t, abi.OK, c.UsageAdd("masked", 3))
	require.EqualValues(t, abi.OK, c.UsageAdd("masked", 4))
	require.EqualValues(t, 8, c.UsageSum("masked", out))
	assert.EqualValues(t, 7, binary.LittleEndian.Uint64(out))
	assert.EqualValues(t, abi.BadArgument, c.UsageAdd("Masked", 1))
	assert.EqualValues(t, abi.BadArgument, c.UsageSum("masked", out[1:]))
	assert.EqualValues(t, abi.NotGranted, newBench(t, "usage:write").call().UsageSum("masked", out))
}

func TestValuesAreTheUsers(t *testing.T) {
	b := newBench(t, "kv:cache")
	c := b.call()
	assert.EqualValues(t, abi.NotFound, c.KVGet("cache", "k", nil))
	require.EqualValues(t, abi.OK, c.KVPut("cache", "k", "", 1000))
	assert.EqualValues(t, 0, c.KVGet("cache", "k", nil), "empty is not absent")
	assert.EqualValues(t, abi.BadArgument, c.KVPut("cache", "k", "v", 0))
	assert.EqualValues(t, abi.BadArgument, c.KVPut("cache", "", "v", 1))
	assert.EqualValues(t, abi.OverLimit, c.KVPut("cache", strings.Repeat("k", 1<<20), "v", 1))
	assert.EqualValues(t, abi.NotGranted, c.KVGet("other", "k", nil))
	b.ev.User = "somebody else"
	assert.EqualValues(t, abi.NotFound, c.KVGet("cache", "k", nil))
}

func TestClaims(t *testing.T) {
	b := newBench(t, "claim:jobs")
	c, out := b.call(), make([]byte, abi.ClaimSize)
	claim := func() (state uint32, token int64) {
		require.EqualValues(t, abi.ClaimSize, c.Claim("jobs", "k", 1000, out))
		return binary.LittleEndian.Uint32(out[abi.ClaimState:]), int64(binary.LittleEndian.Uint64(out[abi.ClaimToken:]))
	}
	state, token := claim()
	assert.EqualValues(t, abi.Claimed, state)
	state, none := claim()
	assert.EqualValues(t, abi.ClaimElsewhere, state)
	assert.Zero(t, none)
	require.EqualValues(t, abi.OK, c.ClaimRenew("jobs", "k", token, 1000))
	assert.EqualValues(t, abi.NotFound, c.ClaimRenew("jobs", "k", token+1, 1000), "fenced")
	require.EqualValues(t, abi.OK, c.ClaimEnd("jobs", "k", token, "", 0), "given back")
	assert.EqualValues(t, abi.NotFound, c.ClaimResult("jobs", "k", nil))
	state, token = claim()
	assert.EqualValues(t, abi.Claimed, state)
	require.EqualValues(t, abi.OK, c.ClaimEnd("jobs", "k", token, "", 1000), "completed with an empty result")
	assert.EqualValues(t, 0, c.ClaimResult("jobs", "k", nil))
	state, _ = claim()
	assert.EqualValues(t, abi.ClaimDone, state)
	assert.EqualValues(t, abi.NotFound, c.ClaimEnd("jobs", "k", token, "x", 1000))
	assert.EqualValues(t, abi.NotGranted, c.Claim("other", "k", 1000, out))
	assert.EqualValues(t, abi.BadArgument, c.Claim("jobs", "k", 0, out))
	assert.EqualValues(t, abi.BadArgument, c.Claim("jobs", "k", 1000, out[1:]))
}

func TestSecretsAreUsedAndNeverRead(t *testing.T) {
	b := newBench(t, "secret:pii", "secret:lost")
	b.stage.Secrets = map[string][]byte{"pii": []byte("key"), "other": []byte("key")}
	c, out := b.call(), make([]byte, 32)
	require.EqualValues(t, 32, c.HMACSHA256("pii", "data", out))
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte("data"))
	assert.Equal(t, mac.Sum(nil), out)
	assert.EqualValues(t, abi.BadArgument, c.HMACSHA256("pii", "data", out[1:]))
	assert.EqualValues(t, abi.NotFound, c.HMACSHA256("lost", "data", out))
	assert.EqualValues(t, abi.NotGranted, c.HMACSHA256("other", "data", out))
}
