package main

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/hostfn"
	memorystore "github.com/hookhost/hookhost/store/memory"
)

// plain is a guest on wazero as it comes: the module as it was built, one
// instance that is never put back, and the same host functions.
type plain struct {
	services *hostfn.Services
	facts    hostfn.Stage
	enter    api.Function
	timed    bool
}

type plainKey struct{}

// newPlain starts a guest without limits.
func newPlain(l *lab, s settings, guest, task string) *plain {
	return startPlain(l, s, guest, task, compiler(l))
}

// newTimed starts a guest that wazero stops when the context of the call is
// done, which is the limit that wazero has.
func newTimed(l *lab, s settings, guest, task string) *plain {
	p := startPlain(l, s, guest, task, compiler(l).WithCloseOnContextDone(true))
	p.timed = true
	return p
}

// compiler is wazero's, with compiled modules kept for as long as ours are.
func compiler(l *lab) wazero.RuntimeConfig {
	cache, err := wazero.NewCompilationCacheWithDir(l.cacheDir("plain"))
	require.NoError(l, err)
	l.Cleanup(func() { _ = cache.Close(l.ctx) })
	return wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache)
}

func startPlain(l *lab, s settings, guest, task string, cfg wazero.RuntimeConfig) *plain {
	p := &plain{services: &hostfn.Services{Store: memorystore.New(chain.WallClock{}), Log: quiet}, facts: hostfn.Stage{Name: guest, Config: configOf(task)}}
	engine := wazero.NewRuntimeWithConfig(l.ctx, cfg)
	l.Cleanup(func() { _ = engine.Close(l.ctx) })
	_, err := wasi_snapshot_preview1.Instantiate(l.ctx, engine)
	require.NoError(l, err)
	require.NoError(l, linkHost(l.ctx, engine))
	ctx := p.with(l.ctx, p.services.NewCall(l.ctx, &p.facts, nil))
	module, err := engine.InstantiateWithConfig(ctx, s.module(l, guest),
		wazero.NewModuleConfig().WithStartFunctions(abi.ExportInitialize).WithSysWalltime().WithSysNanotime())
	require.NoError(l, err)
	code, err := module.ExportedFunction(abi.ExportConfigure).Call(ctx)
	require.NoError(l, err)
	require.Zero(l, code[0])
	p.enter = module.ExportedFunction(abi.ExportCall)
	return p
}

// linkHost gives guests hookhost's functions that need no grant.
func linkHost(ctx context.Context, engine wazero.Runtime) error {
	const module = "hookhost"
	b := engine.NewHostModuleBuilder(module)
	for _, f := range hostfn.Table() {
		if f.Module != module {
			continue
		}
		params := make([]api.ValueType, len(f.Params))
		for i, param := range f.Params {
			params[i] = api.ValueType(param)
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			f.Call(ctx.Value(plainKey{}).(*hostfn.Call), m.Memory(), stack)
		}), params, []api.ValueType{api.ValueTypeI32}).Export(f.Name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

func (p *plain) with(ctx context.Context, c *hostfn.Call) context.Context {
	return context.WithValue(ctx, plainKey{}, c)
}

var errNoVerdict = errors.New("no verdict")

// Call runs the guest once.
func (p *plain) Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	if p.timed {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		ctx = limited
	}
	c := p.services.NewCall(ctx, &p.facts, ev)
	stack := []uint64{uint64(ev.Hook)}
	if err := p.enter.CallWithStack(p.with(ctx, c), stack); err != nil {
		return abi.Verdict{}, err
	}
	kind, wait, ok := abi.Unpack(stack[0])
	if !ok {
		return abi.Verdict{}, errNoVerdict
	}
	return c.Verdict(kind, wait)
}
