package wasm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
)

func TestInspect(t *testing.T) {
	r := New(Options{CacheDir: cacheDir})
	info, err := r.Inspect(t.Context(), fixture(t, "ungranted"))
	require.NoError(t, err)
	assert.Equal(t, Info{
		Imports: []string{
			"hookhost_limit.take (i32, i32, i64, i32, i32) -> (i32)",
			"hookhost_claim.renew (i32, i32, i32, i32, i64, i64) -> (i32)",
		},
		Exports: []string{"hookhost_abi_1 () -> (i64)", "hookhost_call (i32) -> (i64)"},
		Grants:  []string{"claim:NAME", "limit:NAME"},
		Memory:  64 << 10,
		Hooks:   abi.AllHooks,
	}, info)

	info, err = r.Inspect(t.Context(), fixture(t, "command"))
	require.NoError(t, err)
	assert.Equal(t, []string{"_start () -> ()"}, info.Exports)
	require.ErrorIs(t, info.Problem, ErrCommand)

	_, err = r.Inspect(t.Context(), []byte("text"))
	require.ErrorIs(t, err, ErrNotWasm)
	assert.Zero(t, r.cache.InUse(), "all is freed")
}
