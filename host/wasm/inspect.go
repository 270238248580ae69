package wasm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm/meter"
)

// Info is what can be told about a module without a manifest.
type Info struct {
	Imports []string // MODULE.NAME with the signature
	Exports []string // NAME with the signature
	Grants  []string // what a stage of this module has to be granted, in its general form
	Memory  uint64   // bytes to begin with
	Hooks   abi.HookSet
	// Problem is why the module did not start without configuration or does
	// not fit this host. Hooks are not known then.
	Problem error
}

// Inspect compiles a module and starts it once, with no configuration. It
// fails for what is no Wasm module.
func (r *Runtime) Inspect(ctx context.Context, module []byte) (Info, error) {
	info, err := r.describe(ctx, module)
	if err != nil {
		return Info{}, err
	}
	cfg := Config{Name: "inspect", Module: module, Memory: 4 << 30, Pool: 1}
	for family := range grantForms {
		cfg.Grants = append(cfg.Grants, abi.Grant{Family: family})
	}
	stage, err := r.load(ctx, cfg.withDefaults(), &hostfn.Services{Log: r.log})
	if err != nil {
		info.Problem = err
		return info, nil
	}
	info.Hooks = stage.Hooks()
	return info, stage.Close(ctx)
}

func (r *Runtime) describe(ctx context.Context, module []byte) (info Info, err error) {
	code, err := r.compile(ctx, "", module)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, code.Close(ctx)) }()
	compiled := code.Module
	needs := map[string]bool{}
	for _, f := range compiled.ImportedFunctions() {
		from, name, _ := f.Import()
		if from == meter.Module {
			continue
		}
		info.Imports = append(info.Imports, from+"."+name+" "+signatureOf(f).String())
		for _, ours := range abi.Imports() {
			if ours.Module == from && ours.Name == name && ours.Grant != "" {
				needs[grantForms[ours.Grant]] = true
			}
		}
	}
	info.Grants = slices.Sorted(maps.Keys(needs))
	exports := compiled.ExportedFunctions()
	for _, name := range slices.Sorted(maps.Keys(exports)) {
		if strings.HasPrefix(name, meter.Module) {
			continue
		}
		info.Exports = append(info.Exports, name+" "+signatureOf(exports[name]).String())
	}
	for _, memory := range compiled.ExportedMemories() {
		info.Memory = uint64(memory.Min()) << 16
	}
	return info, nil
}
