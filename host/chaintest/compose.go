package chaintest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/chain/manifest"
)

// compose writes the manifest of the scenario into a folder: the one that it
// names, with what it says in its place. It returns its path, and the stages
// that the scenario brings.
func (s *Scenario) compose(dir string) (string, map[string]chain.Stage, error) {
	base, err := s.base()
	if err != nil {
		return "", nil, err
	}
	if s.order != nil {
		base["order"] = s.order
	}
	if s.file.MaxModelCalls != nil {
		base["max_model_calls"] = *s.file.MaxModelCalls
	}
	if err := s.plans(dir, base); err != nil {
		return "", nil, err
	}
	natives, err := s.stages(base)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "hooks.toml"), natives, write(filepath.Join(dir, "hooks.toml"), base)
}

// base is the manifest that the scenario names, with paths that hold from
// anywhere, or an empty one.
func (s *Scenario) base() (map[string]any, error) {
	if s.file.Manifest == "" {
		return map[string]any{"version": int64(1)}, nil
	}
	path := s.doc.Beside(s.file.Manifest)
	data, err := manifest.ReadFile(path)
	if err != nil {
		return nil, manifest.Join(s.doc.Errorf([]string{"manifest"}, "cannot be read: %w", err))
	}
	doc, err := manifest.ParseDocument(path, data)
	if err != nil {
		return nil, err
	}
	base := doc.Root()
	for _, stage := range tables(base["stage"]) {
		if err := absolute(doc, stage, "module"); err != nil {
			return nil, err
		}
	}
	if limits, is := base["limits"].(map[string]any); is {
		return base, absolute(doc, limits, "plans")
	}
	return base, nil
}

func tables(v any) map[string]map[string]any {
	all := map[string]map[string]any{}
	values, _ := v.(map[string]any)
	for name, v := range values {
		if t, is := v.(map[string]any); is {
			all[name] = t
		}
	}
	return all
}

func absolute(doc *manifest.Document, t map[string]any, key string) error {
	path, is := t[key].(string)
	if !is {
		return nil
	}
	whole, err := filepath.Abs(doc.Beside(path))
	t[key] = whole
	return err
}

// stages lays the scenario's tables over those of the manifest, with the paths
// of modules relative to the scenario. Stages that the scenario's order leaves
// out are not there.
func (s *Scenario) stages(base map[string]any) (map[string]chain.Stage, error) {
	natives := map[string]chain.Stage{}
	all := tables(base["stage"])
	for name, values := range s.file.Stage {
		t := all[name]
		if t == nil {
			t = map[string]any{}
			all[name] = t
		}
		maps.Copy(t, values)
		if _, own := values["module"]; own {
			if err := absolute(s.doc, t, "module"); err != nil {
				return nil, err
			}
		}
		if k, is := kinds[text(values["kind"])]; is {
			delete(t, "kind")
			if t["role"] == nil {
				t["role"] = k.role
			}
			natives[name] = k.make(config(t))
		}
	}
	s.giveTime(base, all)
	if s.order != nil {
		maps.DeleteFunc(all, func(name string, _ map[string]any) bool { return !slices.Contains(s.order, name) })
	}
	base["stage"] = all
	return natives, nil
}

// giveTime keeps a machine that is busy from failing stages and store, whose
// timeouts are in real time: they are long unless the scenario is about them.
// The store's has to stay below those of all stages.
func (s *Scenario) giveTime(base map[string]any, all map[string]map[string]any) {
	shortest := longTimeout
	for name, t := range all {
		own, is := s.file.Stage[name]["timeout"]
		if !is {
			t["timeout"] = longTimeout.String()
			continue
		}
		if d, err := time.ParseDuration(text(own)); err == nil { // else the manifest's reader blames it
			shortest = min(shortest, d)
		}
	}
	at, is := base["store"].(map[string]any)
	if !is {
		at = map[string]any{}
		base["store"] = at
	}
	at["timeout"] = max(shortest/2, time.Millisecond).Truncate(time.Millisecond).String()
}

const longTimeout = 10 * time.Second

func config(t map[string]any) map[string]string {
	out := map[string]string{}
	values, _ := t["config"].(map[string]any)
	for key, v := range values {
		out[key] = text(v)
	}
	return out
}

// plans puts the scenario's own numbers in place of the manifest's.
func (s *Scenario) plans(dir string, base map[string]any) error {
	path := ""
	switch plans := s.file.Plans.(type) {
	case nil:
		return nil
	case string:
		var err error
		if path, err = filepath.Abs(s.doc.Beside(plans)); err != nil {
			return err
		}
	case map[string]any:
		path = filepath.Join(dir, "plans.toml")
		whole := map[string]any{"version": "scenario", "default": "test"}
		maps.Copy(whole, plans)
		if err := write(path, whole); err != nil {
			return err
		}
	}
	base["limits"] = map[string]any{"plans": path}
	return nil
}

func write(path string, values map[string]any) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(toml.NewEncoder(f).Encode(values), f.Close())
}

// placed puts what the host says about the composed manifest where the
// scenario says it, and else where the scenario names the manifest.
func (s *Scenario) placed(err error) error {
	var many *manifest.Errors
	if !errors.As(err, &many) {
		var one *manifest.Error
		if !errors.As(err, &one) {
			return fmt.Errorf("scenario[%s]: %w", s.Name, err)
		}
		many = &manifest.Errors{All: []*manifest.Error{one}}
	}
	var all []*manifest.Error
	for _, e := range many.All {
		at := []string{"manifest"}
		if own := []string{"stage", e.Stage, strings.Split(e.Key, ".")[0]}; s.doc.Has(own...) {
			at = own
		} else if s.doc.Has(e.Key) {
			at = []string{e.Key}
		} else if strings.HasSuffix(e.File, "plans.toml") && s.doc.Has("plans") {
			at = []string{"plans"}
		}
		words := e.Error()[strings.Index(e.Error(), ": ")+2:]
		if e.Key == "module" && errors.Is(e, fs.ErrNotExist) {
			words += "; build the guests first: make guests"
		}
		all = append(all, s.doc.Errorf(at, "%s", words))
	}
	return manifest.Join(all...)
}
