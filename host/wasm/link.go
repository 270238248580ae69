package wasm

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm/meter"
	"github.com/hookhost/hookhost/host/wasm/wasi"
)

// hostFunction is one function that a guest may import. It runs for the guest
// whose call it is.
type hostFunction struct {
	module, name string
	sig          signature
	grant        string // the family, empty if none is needed
	run          func(g *guest, stack []uint64)
}

func (f *hostFunction) fullName() string { return f.module + "." + f.name }

// hostFunctions has every function that there is: those of the ABI and of
// WASI.
var hostFunctions = sync.OnceValue(func() map[string]*hostFunction {
	all := map[string]*hostFunction{}
	for _, f := range hostfn.Table() {
		h := &hostFunction{module: f.Module, name: f.Name, sig: signature{valueTypes(f.Params), i32}, grant: f.Grant}
		h.run = func(g *guest, stack []uint64) { f.Call(g.host, (*countedMemory)(g), stack) }
		all[h.fullName()] = h
	}
	for _, f := range wasi.Functions() {
		h := &hostFunction{module: wasi.Module, name: f.Name, sig: signature{valueTypes(f.Params), valueTypes(f.Results)}}
		h.run = func(g *guest, stack []uint64) { f.Call(&g.wasi, g.module.Memory(), stack) }
		all[h.fullName()] = h
	}
	return all
})

func valueTypes(types []abi.Type) []api.ValueType {
	list := make([]api.ValueType, len(types))
	for i, t := range types {
		list[i] = api.ValueType(t)
	}
	return list
}

// countedMemory is a guest's memory, which counts what functions read and
// write.
type countedMemory guest

func (m *countedMemory) Read(offset, n uint32) ([]byte, bool) {
	bytes, whole := m.module.Memory().Read(offset, n)
	m.budget.bytes += int64(len(bytes))
	return bytes, whole
}

type guestKey struct{}

// guestOf finds whose call it is that a function is in.
func guestOf(ctx context.Context) *guest { return ctx.Value(guestKey{}).(*guest) }

// linkHost puts the functions that the module imports into the engine.
func (s *Stage) linkHost(ctx context.Context) error {
	builders := map[string]wazero.HostModuleBuilder{}
	export := func(module, name string, sig signature, run api.GoModuleFunc) {
		if builders[module] == nil {
			builders[module] = s.code.Engine.NewHostModuleBuilder(module)
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(run, sig.params, sig.results).Export(name)
	}
	for _, imported := range s.code.Module.ImportedFunctions() {
		module, name, _ := imported.Import()
		if module == meter.Module {
			continue
		}
		f := hostFunctions()[module+"."+name]
		export(module, name, f.sig, func(ctx context.Context, _ api.Module, stack []uint64) {
			g := guestOf(ctx)
			g.budget.enter()
			f.run(g, stack)
			g.burn(g.budget.leave())
		})
	}
	export(meter.Module, meter.Tick, signature{i64, i64}, func(ctx context.Context, _ api.Module, stack []uint64) {
		stack[0] = uint64(guestOf(ctx).budget.tick(int64(stack[0])))
	})
	export(meter.Module, meter.Deep, signature{}, func(context.Context, api.Module, []uint64) {
		panic(ErrTooDeep)
	})
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}
