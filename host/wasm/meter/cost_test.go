package meter

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// BenchmarkCost is what the meter costs, in time of the same code without it:
// both run in turns, and of many rounds the median counts.
func BenchmarkCost(b *testing.B) {
	for _, w := range []struct {
		language string
		module   []byte
		name     string
		arg      uint64
	}{
		{"c", fixture(b, "work"), "scan", 'x'},
		{"c", fixture(b, "work"), "dfa", 1},
		{"c", fixture(b, "work"), "hash", 1},
		{"c", fixture(b, "work"), "fib", 20},
		{"c", fixture(b, "work"), "mask", 1},
		{"c", fixture(b, "work"), "sort", 100},
		{"c", fixture(b, "work"), "copies", 1},
		{"go", goWork(b), "verdict", 1},
		{"go", goWork(b), "parse", 1},
		{"go", goWork(b), "match", 1},
		{"go", goWork(b), "mask", 1},
	} {
		b.Run(w.language+"/"+w.name, func(b *testing.B) {
			plain, metered := working(b, w.module, false), working(b, w.module, true)
			f, g := plain.ExportedFunction(w.name), metered.ExportedFunction(w.name)
			fuel, depth := metered.ExportedGlobal(Fuel).(api.MutableGlobal), metered.ExportedGlobal(Depth).(api.MutableGlobal)
			run := func(f api.Function, calls int) time.Duration {
				start := time.Now()
				for range calls {
					fuel.Set(1 << 40)
					depth.Set(testDepth)
					_, err := f.Call(b.Context(), w.arg)
					require.NoError(b, err)
				}
				return time.Since(start) / time.Duration(calls)
			}
			calls := max(1, int(200*time.Microsecond/max(run(f, 10), 1)))
			run(g, 10)
			var x, y []time.Duration
			for b.Loop() {
				x, y = append(x, run(f, calls)), append(y, run(g, calls))
			}
			slices.Sort(x)
			slices.Sort(y)
			was, is := float64(x[len(x)/2]), float64(y[len(y)/2])
			fuel.Set(1 << 40)
			_, err := g.Call(b.Context(), w.arg)
			require.NoError(b, err)
			used := 1<<40 - int64(fuel.Get())
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(was, "ns-without")
			b.ReportMetric(is, "ns-with")
			b.ReportMetric(is/was, "ratio")
			b.ReportMetric(float64(used)/is, "fuel/ns")
		})
	}
}

// working is an instance that is ready to be called.
func working(t testing.TB, module []byte, metered bool) api.Module {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var m api.Module
	if metered {
		m = started(t, module, endless())
	} else {
		r := wazero.NewRuntime(ctx)
		t.Cleanup(func() { _ = r.Close(ctx) })
		compiled, err := r.CompileModule(ctx, module)
		require.NoError(t, err)
		withStubs(t, r, compiled)
		m, err = r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions())
		require.NoError(t, err)
	}
	if metered {
		enough(m)
	}
	_, err := m.ExportedFunction("_initialize").Call(ctx)
	require.NoError(t, err)
	return m
}

var goModule []byte

// goWork is testdata/work, compiled.
func goWork(t testing.TB) []byte {
	t.Helper()
	if goModule == nil {
		path := filepath.Join(t.TempDir(), "work.wasm")
		build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-o", path, "./testdata/work")
		build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		goModule, err = os.ReadFile(path)
		require.NoError(t, err)
	}
	return goModule
}

// BenchmarkRewrite is how long a rewrite takes; B/s are of the module as it was.
func BenchmarkRewrite(b *testing.B) {
	for name, module := range map[string][]byte{"go": goWork(b), "c": fixture(b, "work")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(module)))
			b.ReportAllocs()
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				_, err := Rewrite(module)
				require.NoError(b, err)
				best = min(best, time.Since(start))
			}
			b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
		})
	}
}

// TestGoRecursion: the depth is enough for what ordinary guests do, and no more
// than that.
func TestGoRecursion(t *testing.T) {
	m := working(t, goWork(t), true)
	nest := func(levels uint64) error {
		enough(m)
		_, err := m.ExportedFunction("nest").Call(t.Context(), levels)
		return err
	}
	require.NoError(t, nest(1000))
	levels := 1000 + sort.Search(9000, func(n int) bool { return nest(1000+uint64(n)) != nil })
	t.Logf("encoding/json decodes %d levels", levels)
}
