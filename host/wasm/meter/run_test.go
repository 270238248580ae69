package meter

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

var (
	errOver = errors.New("the fuel is used up")
	errDeep = errors.New("the depth is used up")
)

const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// budget is what a test gives a call.
type budget struct {
	slice int64
	most  int64 // fuel; the tick after it ends the call
	used  int64
	ticks int
	asked func() bool // whether to end the call
	yield bool        // to other goroutines, at each tick
}

func endless() *budget { return &budget{slice: 1 << 20, most: math.MaxInt64} }

// tick gives the next slice.
func (b *budget) tick(left int64) int64 {
	b.ticks++
	b.used += b.slice - left
	if b.yield {
		runtime.Gosched()
	}
	if b.used > b.most || b.asked != nil && b.asked() {
		panic(errOver)
	}
	return b.slice
}

type budgetKey struct{}

// withBudget gives one call a budget of its own.
func withBudget(ctx context.Context, b *budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// withMeter gives a runtime the two functions that a module under the meter
// imports. b is for calls without a budget.
func withMeter(t testing.TB, r wazero.Runtime, b *budget) {
	t.Helper()
	_, err := r.NewHostModuleBuilder(Module).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
		own, ok := ctx.Value(budgetKey{}).(*budget)
		if !ok {
			own = b
		}
		stack[0] = uint64(own.tick(int64(stack[0])))
	}), []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64}).Export(Tick).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) { panic(errDeep) }), nil, nil).Export(Deep).
		Instantiate(t.Context())
	require.NoError(t, err)
}

// withStubs gives a runtime what else the module imports: WASI, and functions
// that answer 0.
func withStubs(t testing.TB, r wazero.Runtime, compiled wazero.CompiledModule) {
	t.Helper()
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		switch module {
		case Module:
			continue
		case wasi_snapshot_preview1.ModuleName:
			if r.Module(module) == nil {
				wasi_snapshot_preview1.MustInstantiate(t.Context(), r)
			}
			continue
		}
		if builders[module] == nil {
			builders[module] = r.NewHostModuleBuilder(module)
		}
		results := f.ResultTypes()
		builders[module].NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			for i := range results {
				stack[i] = 0
			}
		}), f.ParamTypes(), results).Export(name)
	}
	for _, b := range builders {
		_, err := b.Instantiate(t.Context())
		require.NoError(t, err)
	}
}

const testDepth = 1 << 16

// enough sets the depth, as a host does before each call.
func enough(m api.Module) {
	m.ExportedGlobal(Depth).(api.MutableGlobal).Set(testDepth)
}

// started is an instance of a module under the meter, after its start.
func started(t testing.TB, module []byte, b *budget) api.Module {
	t.Helper()
	m := instantiated(t, module, b, omission{})
	enough(m)
	_, err := m.ExportedFunction(Start).Call(t.Context())
	require.NoError(t, err)
	return m
}

// instantiated is one before its start.
func instantiated(t testing.TB, module []byte, b *budget, omit omission) api.Module {
	t.Helper()
	rewritten, err := rewrite(module, omit)
	require.NoError(t, err)
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCoreFeatures(features))
	t.Cleanup(func() { _ = r.Close(context.WithoutCancel(t.Context())) })
	compiled, err := r.CompileModule(t.Context(), rewritten.Module)
	require.NoError(t, err)
	withMeter(t, r, b)
	withStubs(t, r, compiled)
	m, err := r.InstantiateModule(t.Context(), compiled, wazero.NewModuleConfig().WithStartFunctions())
	require.NoError(t, err)
	return m
}
