package wasm

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
)

func TestLoadRefusesByName(t *testing.T) {
	for _, tt := range []struct {
		fixture string
		is      error
		says    []string
	}{
		{"command", ErrCommand, []string{"-buildmode=c-shared"}},
		{"no_abi", ErrExport, []string{"hookhost_abi_1 () -> (i64) is missing", "hookhost_call (i32) -> (i64) is missing", "memory is missing"}},
		{"wrong_signature", ErrExport, []string{"hookhost_call is (i64) -> (i64) and should be (i32) -> (i64)"}},
		{"unknown_import", ErrImport, []string{"hookhost.open_file", "env.now"}},
		{"wrong_import", ErrImport, []string{"hookhost.head is imported as (i32) -> (i32) and is (i32, i32) -> (i32)"}},
		{"imported_memory", ErrImport, []string{"a memory"}},
		{"ungranted", ErrNotGranted, []string{"hookhost_limit.take needs the grant limit:NAME", "hookhost_claim.renew needs the grant claim:NAME"}},
		{"feature", ErrFeature, []string{"0x1"}},
		{"hooks", ErrHooks, []string{"0x10000"}},
		{"big_memory", ErrMemory, []string{"67108864", "4194304"}},
		{"trap_in_start_section", ErrStart, []string{"start", "unreachable"}},
		{"trap_in_configure", ErrStart, []string{"configure", "unreachable"}},
		{"trap_in_abi", ErrStart, []string{"hookhost_abi_1", "unreachable"}},
		{"exit_in_initialize", ErrStart, []string{"_initialize", "code 4"}},
	} {
		t.Run(tt.fixture, func(t *testing.T) {
			err := newBench(t, tt.fixture).refuses()
			require.ErrorIs(t, err, tt.is)
			for _, text := range tt.says {
				assert.ErrorContains(t, err, text)
			}
			assert.ErrorContains(t, err, "stage[probe]")
		})
	}
}

func TestLoadRefusesWhatIsNoModule(t *testing.T) {
	whole := fixture(t, "trap_then_next")
	for name, tt := range map[string]struct {
		module []byte
		is     error
	}{
		"nothing":     {nil, ErrNotWasm},
		"text":        {[]byte("#!/bin/sh\n"), ErrNotWasm},
		"magic alone": {whole[:4], ErrInvalid},
		"truncated":   {whole[:len(whole)/2], ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "continue")
			b.cfg.Module = tt.module
			require.ErrorIs(t, b.refuses(), tt.is)
		})
	}
}

func TestLoadStopsAGuestThatDoesNotStart(t *testing.T) {
	b := newBench(t, "loop_in_initialize")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.runtime.Load(ctx, b.cfg, b.services)
	require.ErrorIs(t, err, ErrStart)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requireCause(t, chain.CauseDeadline, err)
}

func TestGuestRejectsItsConfiguration(t *testing.T) {
	err := newBench(t, "reject").refuses()
	var rejected *RejectedError
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, RejectedError{Key: "amount", Text: "must be a number."}, *rejected)

	err = newBench(t, "configure_nonzero").refuses()
	require.ErrorAs(t, err, &rejected)
	assert.Equal(t, RejectedError{Text: "hookhost_configure returned 7"}, *rejected)
}

func TestConfigureSeesNoEvent(t *testing.T) {
	err := newBench(t, "event_in_configure").refuses()
	require.ErrorContains(t, err, "hookhost_configure returned -5", "the code of a function that is not at this hook")
}

func TestGrantsLetAModuleLoad(t *testing.T) {
	err := newBench(t, "ungranted").granted("limit:turn").refuses()
	assert.NotContains(t, err.Error(), "hookhost_limit")
	assert.ErrorContains(t, err, "hookhost_claim")
	newBench(t, "ungranted").granted("limit:turn", "claim:jobs").loads()
}

func TestHooksAreThoseTheModuleAsksFor(t *testing.T) {
	assert.Equal(t, abi.AllHooks, newBench(t, "continue").loads().stage.Hooks())
	assert.Equal(t, abi.SetOf(abi.BeforeModel), newBench(t, "refuse_c").loads().stage.Hooks())
}

func TestOneModuleServesSeveralStages(t *testing.T) {
	b := newBench(t, "memory_refused")
	small, err := b.runtime.Load(t.Context(), b.cfg, b.services)
	require.NoError(t, err)
	b.cfg.Memory = 8 << 20
	large, err := b.runtime.Load(t.Context(), b.cfg, b.services)
	require.NoError(t, err)
	require.Equal(t, 1, b.runtime.cache.InUse(), "compiled once")

	sizeAfterGrowing := func(s *Stage) uint32 {
		ctx, cancel := context.WithTimeout(t.Context(), s.cfg.Timeout)
		defer cancel()
		in, err := s.pool.get(ctx)
		require.NoError(t, err)
		defer s.pool.put(in)
		_, err = in.call(ctx, s.services.NewCall(ctx, &s.facts, event("a")))
		require.NoError(t, err)
		return in.(*guest).module.Memory().Size()
	}
	assert.LessOrEqual(t, sizeAfterGrowing(small), uint32(4<<20))
	require.NoError(t, small.Close(t.Context()))
	size := sizeAfterGrowing(large)
	assert.Greater(t, size, uint32(4<<20), "each stage has its own limit, and outlives the other")
	assert.LessOrEqual(t, size, uint32(8<<20))
	require.NoError(t, large.Close(t.Context()))
	assert.Zero(t, b.runtime.cache.InUse())
}

func TestCloseFreesEverything(t *testing.T) {
	b := newBench(t, "trap_then_next")
	round := func() {
		s, err := b.runtime.Load(t.Context(), b.cfg, b.services)
		require.NoError(t, err)
		_, _ = s.Call(t.Context(), event("boom"))
		_, err = s.Call(t.Context(), event("a"))
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
	}
	for range 20 {
		round()
	}
	memory, goroutines := inUse()
	for range 200 {
		round()
	}
	after, goroutinesAfter := inUse()
	assert.Less(t, after, memory+1<<20, "bytes in use")
	assert.LessOrEqual(t, goroutinesAfter, goroutines+2)
}

// inUse counts the bytes of the heap that live and the goroutines that are left
// when all is quiet.
func inUse() (memory uint64, goroutines int) {
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc, runtime.NumGoroutine()
}
