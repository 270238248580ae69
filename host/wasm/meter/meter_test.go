package meter

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

// TestRewriteFixtures: what the sandbox's own tests run is valid under the
// meter, and stays so when nothing is left of it but what the meter needs.
func TestRewriteFixtures(t *testing.T) {
	for name, module := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, compiles(t.Context(), module), "as it was")
			rewritten, err := Rewrite(module)
			require.NoError(t, err)
			assert.NoError(t, compiles(t.Context(), rewritten.Module), "under the meter")
			assert.Equal(t, name == "table_set", len(rewritten.Unheld) > 0, "%v", rewritten.Unheld)
		})
	}
}

// fixtures are the modules of the sandbox's tests and of the guests, where
// those are built.
func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../testdata/*.wasm")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	guests, err := filepath.Glob("../../../guests/*/*.wasm")
	require.NoError(t, err)
	modules := map[string][]byte{}
	for _, path := range append(paths, guests...) {
		module, err := os.ReadFile(path)
		require.NoError(t, err)
		modules[strings.TrimSuffix(filepath.Base(path), ".wasm")] = module
	}
	return modules
}

func compiles(ctx context.Context, module []byte) error {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	_, err := r.CompileModule(ctx, module)
	return err
}

// TestGuestsInitialize runs what a Go guest does before its first call, which
// is its runtime's start, under the meter.
func TestGuestsInitialize(t *testing.T) {
	for _, name := range []string{"meter", "ratelimit", "redact"} {
		module, ok := fixtures(t)[name]
		require.True(t, ok, "the guests are not built: run make guests")
		b := endless()
		m := started(t, module, b)
		enough(m)
		_, err := m.ExportedFunction("_initialize").Call(t.Context())
		require.NoError(t, err)
		left := m.ExportedGlobal(Depth).Get()
		assert.EqualValues(t, testDepth, left, "all of the depth is given back")
		assert.Positive(t, b.ticks)
		enough(m)
		results, err := m.ExportedFunction("hookhost_abi_1").Call(t.Context())
		require.NoError(t, err)
		assert.NotZero(t, results[0])
	}
}
