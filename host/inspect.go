package host

import (
	"context"
	"errors"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/store/memory"
)

// Inspect reads a manifest and loads its modules as Open does, refuses what
// Open refuses, and tells which hooks each module asks for. Nothing is left
// running.
func Inspect(ctx context.Context, path string, o Options) (*manifest.Manifest, map[string]abi.HookSet, error) {
	o.Store = memory.New(o.clock()) // no module is called, and no server has to be there
	h, built, err := prepare(ctx, path, o)
	if err != nil {
		return nil, nil, err
	}
	return h.manifest, built.Hooks(), errors.Join(built.Retire(ctx), h.store.Close(ctx))
}
