package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm"
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

// Inspection is what can be told about a module.
type Inspection struct {
	wasm.Info
	// Trial is how it ran; nil where it did not start.
	Trial *Trial
	// Problem is why it did not. Without a manifest it has every grant, none of
	// them with a name, and no configuration.
	Problem error
	// Stages are those of the manifest that use the module.
	Stages []InspectedStage
}

// InspectedStage is a stage that uses a module.
type InspectedStage struct {
	*manifest.Stage
	// Refused is why a host would not start with it: a *manifest.Error.
	Refused error
	// Skipped is why it does not load, where the manifest says that the host
	// starts all the same.
	Skipped error
}

// InspectModule tells what can be told about the module in a file without a
// manifest, and runs it at every hook that it asks for, once, on a small
// event.
func InspectModule(ctx context.Context, file string, o Options) (*Inspection, error) {
	h := &Host{options: o, log: o.log(), store: memory.New(o.clock())}
	h.services = &hostfn.Services{Store: h.store, Plans: newPlans(nil, o), Log: h.log}
	h.runtime = h.newRuntime()
	defer h.endTrials(ctx)
	in, module, err := h.inspect(ctx, file)
	if err != nil {
		return nil, err
	}
	spec := chain.Spec{
		Name: "module", Role: chain.Responder, Mode: chain.Enforce, Timeout: manifest.DefaultTimeout,
		OnError: chain.Open, OnLoadError: chain.Open, OnStore: chain.Open,
	}
	stage, err := h.runtime.Load(ctx, wasm.Config{
		Name: spec.Name, File: filepath.Base(file), Module: module, Grants: wasm.EveryGrant(),
		Memory: max(in.Memory, manifest.DefaultMemory), Pool: 1, Timeout: spec.Timeout,
	}, h.services)
	if err != nil {
		in.Problem = errors.Unwrap(err)
		return in, nil
	}
	in.Trial, err = h.try(ctx, spec, stage)
	return in, err
}

// ErrNotUsed is a module that no stage of the manifest uses, by its path or by
// its bytes.
var ErrNotUsed = errors.New("no stage uses the module")

// InspectStages is InspectModule with a manifest: the module is loaded as each
// stage that uses it, the way Open does. The first that starts is the one that
// is run. It fails where Open would refuse the manifest before it came to the
// modules.
func InspectStages(ctx context.Context, file, path string, o Options) (*Inspection, error) {
	o.Store = memory.New(o.clock()) // what the trial writes is nobody's
	h, err := read(ctx, path, o)
	if err != nil {
		return nil, err
	}
	defer h.endTrials(ctx)
	in, module, err := h.inspect(ctx, file)
	if err != nil {
		return nil, err
	}
	for i := range h.manifest.Stages {
		s := &h.manifest.Stages[i]
		if !uses(s, file, module) {
			continue
		}
		inspected, err := h.inspectStage(ctx, s, in)
		if err != nil {
			return nil, err
		}
		in.Stages = append(in.Stages, inspected)
	}
	if len(in.Stages) == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNotUsed)
	}
	return in, nil
}

// endTrials lets go of what trials left: all of it is in memory.
func (h *Host) endTrials(ctx context.Context) { _, _ = h.services.Close(ctx), h.store.Close(ctx) }

func (h *Host) inspect(ctx context.Context, file string) (*Inspection, []byte, error) {
	module, err := manifest.ReadModule(file)
	if err != nil {
		return nil, nil, fmt.Errorf("module[%s]: %w", file, err)
	}
	info, err := h.runtime.Inspect(ctx, filepath.Base(file), module)
	if err != nil {
		return nil, nil, fmt.Errorf("module[%s]: %w", file, err)
	}
	return &Inspection{Info: info}, module, nil
}

// uses reports whether a stage's module is the one in the file.
func uses(s *manifest.Stage, file string, module []byte) bool {
	if s.Code != nil && bytes.Equal(s.Code, module) {
		return true
	}
	a, missing := os.Stat(s.Module)
	b, gone := os.Stat(file)
	return missing == nil && gone == nil && os.SameFile(a, b)
}

// inspectStage loads the module as a stage, and runs it if none did yet.
func (h *Host) inspectStage(ctx context.Context, s *manifest.Stage, in *Inspection) (InspectedStage, error) {
	inspected := InspectedStage{Stage: s}
	if s.Spec.Mode == chain.Off {
		return inspected, nil
	}
	cfg, err := config(h.manifest, s)
	if err != nil {
		inspected.Refused = err
		return inspected, nil
	}
	stage, err := h.runtime.Load(ctx, cfg, h.services)
	switch {
	case err == nil && in.Trial == nil:
		in.Trial, err = h.try(ctx, s.Spec, stage)
		return inspected, err
	case err == nil:
		return inspected, stage.Close(ctx)
	}
	broken, refused := h.unloadable(h.manifest, s, err)
	inspected.Refused = refused
	if broken != nil {
		inspected.Skipped = errors.Unwrap(err)
	}
	return inspected, nil
}
