package host

import (
	"context"
	"errors"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// Inspect reads a manifest and loads its modules as Open does, refuses what
// Open refuses, and tells which hooks each module asks for. Nothing is left
// running.
func Inspect(ctx context.Context, path string, o Options) (*manifest.Manifest, map[string]abi.HookSet, error) {
	h := &Host{path: path, options: o, log: o.log(), plans: &plans{clock: o.clock()}}
	m, err := manifest.Load(path, o.manifest())
	if err != nil {
		return nil, nil, err
	}
	numbers, err := loadPlans(m)
	if err != nil {
		return nil, nil, err
	}
	h.plans.current.Store(numbers)
	var shared store.Store = memory.New(o.clock())
	if o.Store == nil { // else it stands in for the manifest's, and is not ours to close
		if shared, err = h.openStore(m); err != nil {
			return nil, nil, err
		}
	}
	h.services = &hostfn.Services{Store: shared, Plans: h.plans, Log: h.log}
	h.runtime = wasm.New(cacheDir(o.CacheDir), h.log)
	built, err := h.build(ctx, m)
	if err != nil {
		return nil, nil, errors.Join(err, shared.Close(ctx))
	}
	return m, built.Hooks(), errors.Join(built.Retire(ctx), shared.Close(ctx))
}
