package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/wasm"
)

func inspect(ctx context.Context, c *command) error {
	var f manifestFlags
	f.declare(c)
	f.optional(c)
	free, err := c.parseAround("inspect [flags] FILE", "Shows what a module asks for and what it does: its hooks, its imports and the\ngrants for them, its memory, how it was built, and how it runs at each hook, once,\non a small event. With --manifest it is loaded as each stage that uses it; exits\nwith 1 where a host would refuse it.")
	switch {
	case err != nil:
		return err
	case len(free) == 0:
		return c.misused("no FILE")
	case len(free) > 1:
		return c.misused("unexpected argument %q", free[1])
	}
	i, err := f.inspection(ctx, c, free[0])
	if i == nil || err != nil && c.json {
		return err
	}
	if c.json {
		if wrote := writeJSON(c, i); wrote != nil {
			return wrote
		}
	} else {
		i.print(c.stdout)
	}
	if err == nil && i.refused() {
		err = errFailed
	}
	return err
}

// inspection is what the command shows, and an error where that is not all
// that was asked for.
func (f *manifestFlags) inspection(ctx context.Context, c *command, file string) (*inspection, error) {
	o := host.Options{
		Dev: f.dev, Env: f.env, CacheDir: f.cacheDir, Log: slog.New(slog.DiscardHandler), Compiling: c.compiling, CacheWarning: c.cacheWarning,
	}
	var failed error
	if f.manifest != "" {
		in, err := host.InspectStages(ctx, file, f.manifest, o)
		if err == nil {
			return newInspection(file, in), nil
		}
		failed = err
	}
	in, err := host.InspectModule(ctx, file, o)
	if err != nil {
		return nil, err
	}
	return newInspection(file, in), failed
}

// inspection is what can be told about a module.
type inspection struct {
	File     string           `json:"file"`
	Size     int              `json:"size"`
	SHA256   string           `json:"sha256"`
	ABI      int              `json:"abi"`
	Origin   origin           `json:"origin"`
	Hooks    []string         `json:"hooks"`
	Imports  []importLine     `json:"imports"`
	Exports  []string         `json:"exports"`
	Memory   memoryLine       `json:"memory"`
	Unheld   []string         `json:"unheld,omitempty"`
	Trial    []trialLine      `json:"trial"`
	Problem  string           `json:"problem,omitempty"`
	Stages   []inspectedStage `json:"stages,omitempty"`
	Paste    string           `json:"paste"`
	hopeless bool             // no manifest would let it load
}

type origin struct {
	Languages []string `json:"languages,omitempty"`
	Tools     []string `json:"tools,omitempty"`
	Package   string   `json:"package,omitempty"`
	Modules   []string `json:"modules,omitempty"`
}

type importLine struct {
	Name      string `json:"name"`
	Signature string `json:"signature"`
	Grant     string `json:"grant,omitempty"`
}

// memoryLine is in bytes.
type memoryLine struct {
	Initial uint64 `json:"initial"`
	Maximum uint64 `json:"maximum,omitempty"`
	Used    uint64 `json:"used,omitempty"` // at most, in the trial
}

type trialLine struct {
	Hook    string  `json:"hook"`
	Verdict string  `json:"verdict"`
	Detail  string  `json:"detail,omitempty"`
	TookMS  float64 `json:"took_ms"`
	Fuel    int64   `json:"fuel"`
	Memory  uint64  `json:"memory"` // bytes behind it
}

type inspectedStage struct {
	Stage   string          `json:"stage"`
	Role    string          `json:"role"`
	Mode    string          `json:"mode"`
	Grants  []string        `json:"grants"`
	Refused *manifest.Error `json:"refused,omitempty"`
	Skipped string          `json:"skipped,omitempty"`
}

func newInspection(file string, in *host.Inspection) *inspection {
	i := &inspection{
		File: file, Size: in.Size, SHA256: in.SHA256, ABI: in.ABI, Origin: origin(in.Origin), Hooks: []string{},
		Imports: []importLine{}, Exports: in.Exports, Unheld: in.Unheld, Memory: memoryLine{Initial: in.Memory, Maximum: in.MaxMemory},
		Trial: []trialLine{}, Paste: paste(file, in.Info),
	}
	for _, imported := range in.Imports {
		i.Imports = append(i.Imports, importLine(imported))
	}
	if in.Trial != nil {
		for _, hook := range abi.Hooks() {
			if in.Trial.Hooks.Has(hook) {
				i.Hooks = append(i.Hooks, hook.String())
			}
		}
		for _, visit := range in.Trial.Visits {
			l := group{visit.Step, 1}.line()
			i.Trial = append(i.Trial, trialLine{l.Hook, l.Verdict, l.Detail, l.TookMS, visit.Fuel, visit.Memory})
			i.Memory.Used = max(i.Memory.Used, visit.Memory)
		}
	}
	if in.Problem != nil {
		i.Problem, i.hopeless = in.Problem.Error(), wasm.Hopeless(in.Problem)
	}
	for _, s := range in.Stages {
		i.Stages = append(i.Stages, newInspectedStage(s))
	}
	return i
}

func newInspectedStage(s host.InspectedStage) inspectedStage {
	shown := inspectedStage{Stage: s.Spec.Name, Role: s.Spec.Role.String(), Mode: s.Spec.Mode.String(), Grants: []string{}}
	for _, g := range s.Grants {
		shown.Grants = append(shown.Grants, g.String())
	}
	if s.Refused != nil && !errors.As(s.Refused, &shown.Refused) {
		shown.Refused = &manifest.Error{Stage: s.Spec.Name, Msg: s.Refused.Error()}
	}
	if s.Skipped != nil {
		shown.Skipped = s.Skipped.Error()
	}
	return shown
}

// refused reports whether a host would not take the module.
func (i *inspection) refused() bool {
	for _, s := range i.Stages {
		if s.Refused != nil {
			return true
		}
	}
	return i.hopeless
}

// paste is a stage of the module, to begin with.
func paste(file string, info wasm.Info) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	grants := make([]string, len(info.Grants))
	for i, g := range info.Grants {
		grants[i] = fmt.Sprintf("%q", g)
	}
	text := fmt.Sprintf("[stage.%s]\nmodule = %q\nsha256 = %q\nrole = %q\n", stageName(name), file, info.SHA256, info.Role)
	if len(grants) > 0 {
		text += "grants = [" + strings.Join(grants, ", ") + "]\n"
	}
	if len(info.Unheld) > 0 {
		text += "isolation = \"none\"\n"
	}
	return text
}

// stageName makes a name of a stage out of that of a file.
func stageName(of string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.ToLower(of))
	return name[:min(len(name), 64)]
}
