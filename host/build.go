package host

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/wasm"
)

// build loads the modules of a manifest, all at once, into a chain. What is
// wrong with them is said at its place in the manifest.
func (h *Host) build(ctx context.Context, m *manifest.Manifest) (*chain.Chain, error) {
	began := time.Now()
	stages := running(m)
	entries := make([]chain.Entry, len(stages))
	faults := make([]error, len(stages))
	var loading sync.WaitGroup
	for i, s := range stages {
		loading.Go(func() {
			entries[i].Spec = s.Spec
			entries[i].Stage, faults[i] = h.load(ctx, m, s)
		})
	}
	loading.Wait()
	err := errors.Join(faults...)
	var built *chain.Chain
	if err == nil {
		built, err = chain.New(m.Version, m.MaxModelCalls, entries...)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(ctx, entries))
	}
	h.log.Info("modules loaded", "stages", len(entries), "took", time.Since(began).Round(time.Millisecond))
	return built, nil
}

// running are the stages that are not off.
func running(m *manifest.Manifest) []*manifest.Stage {
	var stages []*manifest.Stage
	for i := range m.Stages {
		if m.Stages[i].Spec.Mode != chain.Off {
			stages = append(stages, &m.Stages[i])
		}
	}
	return stages
}

func closeAll(ctx context.Context, entries []chain.Entry) error {
	var errs []error
	for _, e := range entries {
		if e.Stage != nil {
			errs = append(errs, e.Stage.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// load makes a stage of its module. What the manifest can be blamed for is
// refused whatever the policies say; for the rest on_load_error decides.
func (h *Host) load(ctx context.Context, m *manifest.Manifest, s *manifest.Stage) (chain.Stage, error) {
	if native := h.options.Native[s.Spec.Name]; native != nil {
		return h.wrap(s, native), nil
	}
	cfg, err := config(m, s)
	if err != nil {
		return nil, err
	}
	loaded, err := h.runtime.Load(ctx, cfg, h.services)
	if err != nil {
		return h.unloadable(m, s, err)
	}
	return h.wrap(s, loaded), nil
}

// config is what the sandbox has to know of a stage.
func config(m *manifest.Manifest, s *manifest.Stage) (wasm.Config, error) {
	secrets, err := m.ReadSecrets(s)
	return wasm.Config{
		Name: s.Spec.Name, File: filepath.Base(s.Module), Module: s.Code, Grants: s.Grants, Config: settings(s.Config), Secrets: secrets,
		Memory: uint64(s.Memory), Pool: s.Pool, Timeout: s.Spec.Timeout,
		Shadow: s.Spec.Mode == chain.Shadow, Local: s.Spec.OnStore == chain.Local, Output: s.Output,
		Shared: s.Isolation == manifest.IsolationNone,
	}, err
}

func (h *Host) wrap(s *manifest.Stage, loaded chain.Stage) chain.Stage {
	if h.options.Wrap == nil {
		return loaded
	}
	return h.options.Wrap(s.Spec.Name, loaded)
}

// unloadable places what a module failed with.
func (h *Host) unloadable(m *manifest.Manifest, s *manifest.Stage, err error) (chain.Stage, error) {
	var rejected *wasm.RejectedError
	switch {
	case errors.As(err, &rejected):
		key := "config"
		if rejected.Key != "" {
			key = "config." + rejected.Key
		}
		return nil, m.Errorf(s.Spec.Name, key, "%s", rejected.Text)
	case errors.Is(err, wasm.ErrNotGranted):
		return nil, m.Errorf(s.Spec.Name, "grants", "%w", errors.Unwrap(err))
	case errors.Is(err, wasm.ErrStart) && (s.Spec.OnLoadError == chain.Open || s.Spec.Mode == chain.Shadow):
		h.log.Error("stage did not load and is skipped, as its on_load_error says", "stage", s.Spec.Name, "error", err)
		hooks := s.Spec.Hooks
		if hooks == 0 {
			hooks = abi.AllHooks
		}
		return h.wrap(s, chain.Broken(hooks, err)), nil
	}
	return nil, m.Errorf(s.Spec.Name, "module", "%w", errors.Unwrap(err))
}

func settings(from []manifest.Setting) []hostfn.Setting {
	to := make([]hostfn.Setting, len(from))
	for i, s := range from {
		to[i] = hostfn.Setting{Key: s.Key, Text: s.Value}
	}
	return to
}
