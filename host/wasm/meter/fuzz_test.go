package meter

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// FuzzRewrite: a rewrite never panics, refuses with a position, and what it
// accepts is valid under the meter if and only if it was valid before.
func FuzzRewrite(f *testing.F) {
	for _, module := range seeds(f) {
		f.Add(module)
	}
	f.Fuzz(func(t *testing.T, module []byte) { checkRewrite(t, module) })
}

// FuzzDifferential: what a module does is the same under the meter, as long as
// it does not go on for too long.
func FuzzDifferential(f *testing.F) {
	for _, module := range seeds(f) {
		f.Add(module)
	}
	f.Fuzz(func(t *testing.T, module []byte) { checkSame(t, module) })
}

// TestMutations does some of both, always the same.
func TestMutations(t *testing.T) {
	all := seeds(t)
	random := rand.New(rand.NewPCG(1, 2))
	accepted, ran := 0, 0
	for range 10_000 {
		module := mutated(random, all[random.IntN(len(all))], all)
		if checkRewrite(t, module) {
			accepted++
			ran += checkSame(t, module)
		}
		if t.Failed() {
			t.Fatalf("module %x", module)
		}
	}
	t.Logf("%d mutants valid, %d calls compared", accepted, ran)
	assert.Greater(t, accepted, 300)
	assert.Greater(t, ran, 1000)
}

// seeds are small modules of every kind: fixtures and the spec suite's.
func seeds(t testing.TB) (modules [][]byte) {
	t.Helper()
	patterns := []string{"testdata/*.wasm", "../testdata/*.wasm"}
	if dir, err := wazeroDir(t.Context()); err == nil {
		for _, s := range []string{"v2", "tail-call"} {
			patterns = append(patterns, filepath.Join(dir, "internal/integration_test/spectest", s, "testdata/*.0.wasm"))
		}
	}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			info, err := os.Stat(path)
			require.NoError(t, err)
			if info.Size() > 4<<10 {
				continue
			}
			module, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrPermission) {
				continue
			}
			require.NoError(t, err)
			modules = append(modules, module)
		}
	}
	return modules
}

// mutated changes a few bytes of a module, mostly of its code and mostly to
// what other code has.
func mutated(random *rand.Rand, seed []byte, all [][]byte) []byte {
	module := bytes.Clone(seed)
	from, to := 8, len(module)
	if code, ok := codeOf(module); ok && random.IntN(4) > 0 {
		from, to = code.at, len(code.in)
	}
	if to-from < 2 {
		return module
	}
	for range 1 + random.IntN(3) {
		at := from + random.IntN(to-from)
		switch random.IntN(5) {
		case 0:
			module[at] = byte(random.UintN(256))
		case 1:
			module[at] ^= 1 << random.UintN(8)
		case 2:
			module[at] = byte(random.UintN(0xd3))
		case 3: // a stretch of this module
			n := 1 + random.IntN(min(16, to-at))
			source := from + random.IntN(to-from-n+1)
			copy(module[at:at+n], bytes.Clone(module[source:source+n]))
		case 4: // a stretch of another's code
			if code, ok := codeOf(all[random.IntN(len(all))]); ok {
				n := 1 + random.IntN(min(16, to-at, len(code.in)-code.at))
				source := code.at + random.IntN(len(code.in)-code.at-n+1)
				copy(module[at:at+n], code.in[source:source+n])
			}
		}
	}
	return module
}

// codeOf finds the code section.
func codeOf(module []byte) (reader, bool) {
	for r := (reader{module, 8}); r.more(); {
		id := r.byte()
		content := r.limit(r.u32())
		r.at = len(content.in)
		if id == sectionCode {
			return content, content.more()
		}
	}
	return reader{}, false
}

// checkRewrite says whether the module is valid and accepted. Only what Rewrite
// has accepted is shown to the engine, which allocates by numbers it has not
// checked.
func checkRewrite(t *testing.T, module []byte) bool {
	rewritten, err := Rewrite(module)
	if err != nil {
		var refusal *Error
		require.ErrorAs(t, err, &refusal)
		assert.LessOrEqual(t, refusal.Offset, len(module))
		return false
	}
	before, after := validated(t, module), validated(t, rewritten.Module)
	if (before == nil) != (after == nil) && !inCustomSection(before) {
		t.Errorf("valid with %v and %v", before, after)
	}
	return before == nil && after == nil
}

// inCustomSection: custom sections are left out, what is wrong with them too.
func inCustomSection(err error) bool {
	return err != nil && bytes.Contains([]byte(err.Error()), []byte("custom"))
}

func validated(t *testing.T, module []byte) error {
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	defer r.Close(t.Context())
	_, err := r.CompileModule(t.Context(), module)
	return err
}

// checkSame runs all exported functions of a valid module under the meter and,
// where that did not take long, as it is. It returns how many it compared.
func checkSame(t *testing.T, module []byte) (compared int) {
	rewritten, err := Rewrite(module)
	if err != nil || validated(t, module) != nil {
		return 0
	}
	for _, use := range rewritten.Unheld {
		if use.What == nameTableGrow { // the engine would allocate what the meter does not let it
			return 0
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	metered, before := run(t, ctx, rewritten.Module, true)
	if errors.Is(before, errOver) || errors.Is(before, errDeep) {
		return 0
	}
	plain, after := run(t, ctx, module, false)
	if (before == nil) != (after == nil) {
		t.Errorf("instantiated with %v and %v", after, before)
	}
	if before != nil || after != nil {
		return 0
	}
	for _, name := range functions(plain) {
		f, g := plain.ExportedFunction(name), metered.ExportedFunction(name)
		args := make([]uint64, 2*len(f.Definition().ParamTypes())) // a vector is two
		for i, p := range f.Definition().ParamTypes() {
			if p != typeFunc && p != typeExtern {
				args[i] = uint64(i + 3)
			}
		}
		args = args[:words(f.Definition().ParamTypes())]
		metered.ExportedGlobal(Depth).(api.MutableGlobal).Set(littleDepth)
		y, after := g.Call(withBudget(ctx, little()), args...)
		if errors.Is(after, errOver) || errors.Is(after, errDeep) {
			return compared
		}
		x, before := f.Call(ctx, args...)
		if trapKind(before) != trapKind(after) {
			t.Errorf("%s: traps %q and %q", name, trapKind(before), trapKind(after))
		}
		if before == nil && after == nil && !sameValues(f.Definition().ResultTypes(), x, y) {
			t.Errorf("%s: results %#x and %#x", name, x, y)
		}
		if !bytes.Equal(contents(plain), contents(metered)) {
			t.Errorf("%s: memories differ", name)
		}
		compared++
		if t.Failed() || plain.IsClosed() || metered.IsClosed() {
			return compared
		}
	}
	return compared
}

func words(types []api.ValueType) int {
	return int(slots(types))
}

// run instantiates a module, and starts it if it is under the meter.
func run(t *testing.T, ctx context.Context, module []byte, metered bool) (api.Module, error) {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features).
		WithMemoryLimitPages(64).WithCloseOnContextDone(!metered))
	t.Cleanup(func() { _ = r.Close(context.WithoutCancel(ctx)) })
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		return nil, err
	}
	withMeter(t, r, little())
	withStubs(t, r, compiled)
	m, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil || !metered {
		return m, err
	}
	m.ExportedGlobal(Depth).(api.MutableGlobal).Set(littleDepth)
	_, err = m.ExportedFunction(Start).Call(withBudget(ctx, little()))
	return m, err
}
