package meter

import (
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"
)

// Enough of each for what is short, and far too little for the rest.
const (
	littleFuel  = 500_000
	littleDepth = 2_000
	rounds      = 1_000_000 // of the functions that use fuel
	nested      = 10_000    // calls of those that use depth
)

// TestStops: whatever goes on for long is stopped, in every shape of function,
// and the instance lives on. That each of these functions comes to its end when
// the charge is left out is the proof that it was the charge that stopped it.
func TestStops(t *testing.T) {
	shapes := fixture(t, "shapes")
	full := instantiated(t, shapes, endless(), omission{})
	noFuel := instantiated(t, shapes, endless(), omission{fuel: true})
	noDepth := instantiated(t, shapes, endless(), omission{depth: true})

	var stopped int
	for _, name := range functions(full) {
		switch kind, _, _ := strings.Cut(name, "_"); kind {
		case "fuel":
			t.Run(name, func(t *testing.T) {
				assert.ErrorIs(t, call(t, full, name, rounds), errOver)
				assert.NoError(t, call(t, noFuel, name, rounds), "without the charge")
				assert.NoError(t, call(t, full, "short_add", 1), "the next call")
				stopped++
			})
		case "depth":
			t.Run(name, func(t *testing.T) {
				assert.ErrorIs(t, call(t, full, name, nested), errDeep)
				_, err := noDepth.ExportedFunction(name).Call(t.Context(), nested)
				assert.NoError(t, err, "without the charge")
				assert.NoError(t, call(t, full, "short_add", 1), "the next call")
				assert.NoError(t, call(t, full, name, 100), "less of it")
				assert.EqualValues(t, littleDepth, depthLeft(full), "all is given back")
				stopped++
			})
		case "short":
			t.Run(name, func(t *testing.T) {
				assert.NoError(t, call(t, full, name, 1))
				assert.EqualValues(t, littleDepth, depthLeft(full), "all is given back")
			})
		}
	}
	assert.Greater(t, stopped, 30)
}

// TestStopsStart: what a start function does is under the meter too.
func TestStopsStart(t *testing.T) {
	for name, want := range map[string]error{"long_start": errOver, "deep_start": errDeep} {
		m := instantiated(t, fixture(t, name), endless(), omission{})
		assert.ErrorIs(t, call(t, m, Start), want, name)
		m = instantiated(t, fixture(t, name), endless(), omission{fuel: true, depth: true})
		assert.NoError(t, call(t, m, Start), "without the charge")
	}
}

func little() *budget { return &budget{slice: 1000, most: littleFuel} }

// call runs a function with a new budget of fuel and depth.
func call(t *testing.T, m api.Module, name string, args ...uint64) error {
	t.Helper()
	m.ExportedGlobal(Fuel).(api.MutableGlobal).Set(0)
	m.ExportedGlobal(Depth).(api.MutableGlobal).Set(littleDepth)
	f := m.ExportedFunction(name)
	require.NotNil(t, f, name)
	_, err := f.Call(withBudget(t.Context(), little()), args...)
	return err
}

func depthLeft(m api.Module) uint64 { return m.ExportedGlobal(Depth).Get() }

func functions(m api.Module) []string {
	var names []string
	for name := range m.ExportedFunctionDefinitions() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	module, err := os.ReadFile("testdata/" + name + ".wasm")
	require.NoError(t, err)
	return module
}

// TestDepthIsOfNativeStack: what a call may use of the depth bounds what it
// uses of the engine's stack, in frames of any kind.
func TestDepthIsOfNativeStack(t *testing.T) {
	const (
		ceiling = 10_240 << 13 // bytes: the engine's stack doubles until it is over 50 MB
		bound   = 8 << 20
	)
	shapes := fixture(t, "shapes")
	metered := instantiated(t, shapes, endless(), omission{})
	native := instantiated(t, shapes, endless(), omission{depth: true})
	most := func(m api.Module, name string, step int) int {
		return step * sort.Search(1<<10, func(n int) bool {
			enough(m)
			_, err := m.ExportedFunction(name).Call(t.Context(), uint64(n*step))
			return err != nil
		})
	}
	for _, name := range functions(metered) {
		if strings.HasPrefix(name, "depth_") {
			calls, frame := most(metered, name, 1<<7), ceiling/most(native, name, 1<<11)
			t.Logf("%s: %d calls of %d bytes", name, calls, frame)
			assert.Greater(t, calls, 5000, name)
			assert.Less(t, calls*frame, bound, name)
		}
	}
}
