package manifest

import (
	"path/filepath"
	"slices"
	"strings"
)

// An overlay changes what differs between environments: the store, the limits,
// and the modes and policies of stages. It never changes what runs, in which
// order, or what it may do.
var (
	overlayKeys      = []string{"version", "store", "limits", "max_model_calls", "stage"}
	overlayStageKeys = []string{"mode", "timeout", "refusal", "on_error", "on_load_error", "on_store_error"}
)

// overlay reads the file that the options name, if they name one.
func overlay(manifest string, o Options) (*source, *Error) {
	path := o.Overlay
	if path == "" {
		if o.Env == "" {
			return nil, nil
		}
		if _, err := asName(o.Env); err != nil {
			return nil, (&Error{File: manifest}).describe("environment: %w", err)
		}
		ext := filepath.Ext(manifest)
		path = strings.TrimSuffix(manifest, ext) + "." + o.Env + ext
	}
	data, err := ReadFile(path)
	if err != nil {
		return nil, (&Error{File: path}).describe("cannot be read: %w", reason(err))
	}
	return parse(path, data)
}

// restrict blames what an overlay may not change, and takes it out, so that
// nothing else is blamed on it.
func (s *source) restrict(f *faults, base *source) {
	t := rootTable(f, s)
	t.restrict(overlayKeys)
	stages := t.sub("stage")
	declared, _ := base.root["stage"].(map[string]any)
	for _, name := range stages.keys() {
		one := stages.sub(name).about("stage[" + name + "]")
		one.stage = name
		if _, found := declared[name]; !found {
			one.errorf(nil, "%s has no stage of that name: an overlay adds none", base.file)
			delete(stages.layers[0].values, name)
			continue
		}
		one.restrict(overlayStageKeys)
	}
}

func (t *table) restrict(allowed []string) {
	for _, l := range t.layers {
		for key := range l.values {
			if !slices.Contains(allowed, key) {
				t.blame(l.source, key, "an overlay may not change this, only %s", list(allowed))
				delete(l.values, key)
			}
		}
	}
}
