package wasm

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/chain"
)

func TestInspect(t *testing.T) {
	r := New(Options{CacheDir: cacheDir})
	info, err := r.Inspect(t.Context(), "ungranted.wasm", fixture(t, "ungranted"))
	require.NoError(t, err)
	assert.Equal(t, Info{
		Size:   157,
		SHA256: "a628ea4f4d2786d4a06d1ad880ae2ffaa4a0ae8aa028da640b127f9c0f73525d",
		ABI:    1,
		Imports: []Import{
			{"hookhost_limit.take", "(i32, i32, i64, i32, i32) -> (i32)", "limit:NAME"},
			{"hookhost_claim.renew", "(i32, i32, i32, i32, i64, i64) -> (i32)", "claim:NAME"},
		},
		Exports: []string{"hookhost_abi_1 () -> (i64)", "hookhost_call (i32) -> (i64)"},
		Grants:  []string{"claim:NAME", "limit:NAME"},
		Role:    chain.Transformer,
		Memory:  64 << 10,
	}, info)

	info, err = r.Inspect(t.Context(), "command.wasm", fixture(t, "command"))
	require.NoError(t, err)
	assert.Equal(t, []string{"_start () -> ()"}, info.Exports)
	assert.Zero(t, info.ABI)

	_, err = r.Inspect(t.Context(), "text", []byte("text"))
	require.ErrorIs(t, err, ErrNotWasm)
	assert.Zero(t, r.cache.InUse(), "all is freed")
}

func TestTheRoleIsTheLeastThatAModulesImportsAreFor(t *testing.T) {
	r := New(Options{CacheDir: cacheDir})
	for name, role := range map[string]chain.Role{
		"continue": chain.Observer, "prints": chain.Observer, "mask_c": chain.Transformer, "ready": chain.Responder, "refuse_c": chain.Responder,
	} {
		info, err := r.Inspect(t.Context(), name, fixture(t, name))
		require.NoError(t, err)
		assert.Equal(t, role, info.Role, name)
	}
}

func TestOriginIsWhatTheModuleSays(t *testing.T) {
	o := originOf(compiledGolden(t))
	assert.Equal(t, []string{"Go " + runtime.Version()}, o.Languages)
	assert.Equal(t, []string{"Go cmd/compile " + runtime.Version()}, o.Tools)
	assert.Equal(t, "github.com/hookhost/hookhost/abi/golden/guest", o.Package)
	assert.Contains(t, o.Modules[0], "github.com/hookhost/hookhost ")

	producers := "\x09producers\x02\x08language\x01\x03C11\x00\x0cprocessed-by\x02\x05clang\x0419.1\x03lld\x00"
	module := slices.Concat(fixture(t, "continue"), []byte{0, byte(len(producers))}, []byte(producers))
	assert.Equal(t, Origin{Languages: []string{"C11"}, Tools: []string{"clang 19.1", "lld"}}, originOf(module))
	for cut := range len(producers) {
		originOf(module[:len(module)-cut])
	}
	assert.Zero(t, originOf(fixture(t, "continue")))
	assert.Zero(t, originOf(nil))
}

// FuzzOrigin reads what anybody may have put there.
func FuzzOrigin(f *testing.F) {
	for _, name := range []string{"continue", "mask_c", "refuse_c"} {
		module, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
		require.NoError(f, err)
		f.Add(module)
		f.Add(slices.Concat(module, goInfoBegin, []byte("path\texample.com/guest\nmod\texample.com\tv1.2.3\n"), goInfoEnd))
	}
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x20\x09producers\xff\xff\xff\xff\x0f\x08language\x01\x02Go\x04go1.9"))
	f.Fuzz(func(t *testing.T, module []byte) {
		o := originOf(module)
		total := len(o.Package)
		for _, list := range [][]string{o.Languages, o.Tools, o.Modules} {
			for _, text := range list {
				total += len(text)
			}
		}
		assert.LessOrEqual(t, total, 3*len(module), "nothing that does not stand there")
	})
}
