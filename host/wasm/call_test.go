package wasm

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/internal/fake"
)

func TestVerdicts(t *testing.T) {
	v, err := newBench(t, "continue").loads().call("a")
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue}, v)

	v, err = newBench(t, "wait").loads().call("a")
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Wait, Wait: 1500 * time.Millisecond}, v)

	newBench(t, "ready").loads().answers("ready")
}

func TestCausesOfFailure(t *testing.T) {
	for _, tt := range []struct {
		fixture string
		cause   chain.Cause
		says    string
	}{
		{"trap", chain.CauseTrap, "unreachable"},
		{"memory_bomb", chain.CauseMemory, "unreachable"},
		{"zero_verdict", chain.CauseBadVerdict, "0x0 is no verdict"},
		{"unknown_verdict", chain.CauseBadVerdict, "0x9 is no verdict"},
		{"stray_bits", chain.CauseBadVerdict, "0x101 is no verdict"},
		{"wait_without_ms", chain.CauseBadVerdict, "0x4 is no verdict"},
		{"respond_without_answer", chain.CauseBadVerdict, "without an answer"},
		{"fail", chain.CauseFail, "could not decide"},
	} {
		t.Run(tt.fixture, func(t *testing.T) {
			b := newBench(t, tt.fixture).pool(1).loads()
			for range 3 {
				assert.ErrorContains(t, b.fails(tt.cause), tt.says)
			}
		})
	}
}

func TestAStackThatGrowsForEverIsStopped(t *testing.T) {
	b := newBench(t, "stack_bomb").pool(1).loads()
	for range 3 {
		assert.ErrorIs(t, b.fails(chain.CauseDepth), ErrTooDeep)
	}
}

func TestMemoryThatWasRefusedIsNoFailure(t *testing.T) {
	v, err := newBench(t, "memory_refused").loads().call("a")
	require.NoError(t, err)
	require.Equal(t, abi.Continue, v.Kind)
}

func TestLoopEndsInTime(t *testing.T) {
	b := newBench(t, "loop").within(50 * time.Millisecond).loads()
	begin := time.Now()
	err := b.fails(chain.CauseDeadline)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(begin), 5*time.Second)
}

func TestACallThatRunsWhenItsStageIsClosedGoesOnToItsEnd(t *testing.T) {
	b := newBench(t, "loop").within(100 * time.Millisecond)
	s, err := b.runtime.Load(t.Context(), b.cfg, b.services)
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := s.Call(t.Context(), event("a"))
		ended <- err
	}()
	for s.pool.load().busy == 0 {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, s.Close(t.Context()))
	assert.Equal(t, 1, b.runtime.cache.InUse(), "its code is still there")
	requireCause(t, chain.CauseDeadline, <-ended)
	assert.Eventually(t, func() bool { return b.runtime.cache.InUse() == 0 }, time.Second, time.Millisecond)
	_, err = s.Call(t.Context(), event("a"))
	require.Error(t, err)
}

func TestFuelIsToldWhateverBecameOfTheCall(t *testing.T) {
	v, err := newBench(t, "mask_c").loads().stage.Call(t.Context(), event("a"))
	require.NoError(t, err)
	assert.Positive(t, v.Fuel)

	v, err = newBench(t, "loop").within(50*time.Millisecond).loads().stage.Call(t.Context(), event("a"))
	require.ErrorIs(t, err, ErrDeadline)
	assert.Greater(t, v.Fuel, int64(100_000))
}

func TestCallerWhoGoesAwayIsNotADeadline(t *testing.T) {
	b := newBench(t, "loop").loads()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	_, err := b.stage.Call(ctx, event("a"))
	requireCause(t, chain.CauseCancelled, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestCauseIsTheStoreWhereItWasAway(t *testing.T) {
	b := newBench(t, "loop_after_store").granted("kv:cache").within(500 * time.Millisecond).loads()
	_, err := b.call("a")
	require.NoError(t, err)
	b.store.Down(true)
	b.fails(chain.CauseStore)
}

func TestWaitForAnInstanceThatComesFree(t *testing.T) {
	b := newBench(t, "ready").pool(1).loads()
	in, err := b.stage.pool.get(t.Context())
	require.NoError(t, err)
	time.AfterFunc(50*time.Millisecond, func() { b.stage.pool.put(in) })
	b.answers("ready")

	in, err = b.stage.pool.get(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = b.stage.Call(ctx, event("a"))
	requireCause(t, chain.CausePoolFull, err)
	b.stage.pool.put(in)
}

func TestInstancesAreUsedAgainAndBounded(t *testing.T) {
	b := newBench(t, "ready").pool(3).loads()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				_, err := b.stage.Call(t.Context(), event("a"))
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, b.stage.pool.load().size, int64(3))
	assert.Zero(t, b.stage.pool.load().busy)
}

func TestCase039ATrapCostsOneCall(t *testing.T) {
	b := newBench(t, "trap_then_next").pool(1).loads()
	v, err := b.call("a")
	require.NoError(t, err)
	require.Equal(t, "ok 0", v.Answer.Text)
	for range 100 {
		_, err := b.call("boom")
		requireCause(t, chain.CauseTrap, err)
		v, err := b.call("b")
		require.NoError(t, err)
		require.Equal(t, "ok 0", v.Answer.Text)
	}

	each := 1000
	if testing.Short() {
		each = 100
	}
	memory, _ := inUse()
	var booms, failures atomic.Int64
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range each {
				if (g+i)%2 == 0 {
					booms.Add(1)
					if _, err := b.stage.Call(t.Context(), event("boom")); err != nil {
						failures.Add(1)
					}
					continue
				}
				v, err := b.stage.Call(t.Context(), event("b"))
				if assert.NoError(t, err) {
					assert.Equal(t, "ok 0", v.Answer.Text)
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, booms.Load(), failures.Load())
	after, _ := inUse()
	assert.Less(t, after, memory+2<<20, "bytes in use: the broken instances are gone")
}

func TestCase041StartAndExit(t *testing.T) {
	for _, name := range []string{"table_from_initialize", "ready"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, name).loads()
			for range 1000 {
				b.answers("ready")
			}
		})
	}
	t.Run("a command that exits with 0", func(t *testing.T) {
		err := newBench(t, "exit_zero_in_start").refuses()
		require.ErrorIs(t, err, ErrStart)
		assert.ErrorContains(t, err, "_start: trap: exited with code 0")
		assert.ErrorContains(t, err, "-buildmode=c-shared")
	})
	t.Run("a command that exits with 3", func(t *testing.T) {
		err := newBench(t, "exit_in_start").refuses()
		assert.ErrorContains(t, err, "exited with code 3")
	})
	t.Run("a command that returns", func(t *testing.T) {
		_, err := newBench(t, "start_returns").loads().call("a")
		require.NoError(t, err)
	})
	t.Run("an exit in a hook", func(t *testing.T) {
		b := newBench(t, "exit_in_hook").pool(1).loads()
		_, err := b.call("bye")
		requireCause(t, chain.CauseTrap, err)
		assert.ErrorContains(t, err, "exited with code 0")
		v, err := b.call("a")
		require.NoError(t, err)
		assert.Equal(t, abi.Continue, v.Kind)
	})
	t.Run("no hook export, and a wrong one", func(t *testing.T) {
		assert.ErrorContains(t, newBench(t, "no_abi").refuses(), "hookhost_call")
		assert.ErrorContains(t, newBench(t, "wrong_signature").refuses(), "hookhost_call")
	})
}

func TestCase044TheStoreIsAwayForAWhile(t *testing.T) {
	for _, tt := range []struct {
		away string
		is   func(*testing.T, abi.Verdict)
	}{
		{"open", func(t *testing.T, v abi.Verdict) {
			assert.Equal(t, abi.Continue, v.Kind)
			assert.Contains(t, v.Notes, abi.Note{Key: "limit", Value: "unlimited"})
		}},
		{"closed", func(t *testing.T, v abi.Verdict) {
			assert.Equal(t, abi.Respond, v.Kind)
			assert.Equal(t, &abi.Refusal{Code: "limit.unavailable", Text: "The service is busy."}, v.Answer.Refusal)
		}},
	} {
		t.Run(tt.away, func(t *testing.T) {
			b := newBench(t, "limits").granted("limit:turn").set("away", tt.away).pool(1).loads()
			b.store.Down(true)
			for range 20 {
				begin := time.Now()
				v, err := b.call("a")
				require.NoError(t, err, "no trap, no failure: the guest decided")
				assert.Less(t, time.Since(begin), b.cfg.Timeout)
				tt.is(t, v)
			}
			assert.EqualValues(t, 20, b.services.Fallbacks())
			assert.NotContains(t, b.log.String(), "msg=\"store unavailable\"", "once a run is too often for operators")

			b.store.Down(false)
			for range 20 {
				v, err := b.call("a")
				require.NoError(t, err)
				assert.Equal(t, abi.Verdict{Kind: abi.Continue}, v)
			}
			assert.EqualValues(t, 80, b.balance("turn"))
			assert.EqualValues(t, 20, b.services.Fallbacks())
		})
	}
}

func (b *bench) balance(limit string) int64 {
	b.t.Helper()
	l, _ := b.services.Plans.Limit(b.t.Context(), "app", "user", limit, "")
	n, err := b.store.Balance(b.t.Context(), ownerOf("app", "user"), limit, *l.Bucket)
	require.NoError(b.t, err)
	return n
}

func TestCase044BadPointersAndLongKeysAreCodes(t *testing.T) {
	b := newBench(t, "bad_pointers").granted("kv:cache").loads()
	v, err := b.call("a")
	require.NoError(t, err)
	assert.Equal(t, abi.Continue, v.Kind)
	assert.Zero(t, b.store.Calls(), "none of it reached the store")
}

func TestGuestInCMasks(t *testing.T) {
	b := newBench(t, "mask_c").loads()
	ev := event("a")
	ev.Hook = abi.AfterModel
	ev.Subject = &fake.Subject{Texts: []abi.Leaf{
		{Kind: abi.LeafText, Pointer: "/content/parts/0/text", Text: "nothing here"},
		{Kind: abi.LeafText, Pointer: "/content/parts/1/text", Text: "é 12 and 345"},
	}}
	v, err := b.send(ev)
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Amend, Edits: []abi.Edit{
		{Op: abi.EditSplice, Pointer: "/content/parts/1/text", Start: 3, End: 5, Text: "[number]"},
		{Op: abi.EditSplice, Pointer: "/content/parts/1/text", Start: 10, End: 13, Text: "[number]"},
	}}, v)
}

func TestGuestInCRefuses(t *testing.T) {
	v, err := newBench(t, "refuse_c").loads().call("a")
	require.NoError(t, err)
	assert.Equal(t, abi.Verdict{Kind: abi.Respond, Answer: abi.Answer{
		Refusal: &abi.Refusal{Code: "policy.no", Text: "Not today.", Retry: 1500 * time.Millisecond},
	}}, v)
}

func TestOutputIsDroppedUnlessItIsOn(t *testing.T) {
	b := newBench(t, "prints").loads()
	_, err := b.call("a")
	require.NoError(t, err)
	assert.Empty(t, b.log.String())
	assert.EqualValues(t, 2, b.stage.Dropped())

	b = newBench(t, "prints")
	b.cfg.Output = true
	_, err = b.loads().call("a")
	require.NoError(t, err)
	log := b.log.String()
	assert.Contains(t, log, `red \\x1b[31mhot`, "control characters are escaped")
	assert.Contains(t, log, "logged")
	assert.Contains(t, log, "stage=probe")
	assert.NotContains(t, log, "\x1b")
}
