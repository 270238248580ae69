package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
)

// manifestFlags are those of the verbs that load a manifest as a host would.
type manifestFlags struct {
	manifest string
	env      string
	cacheDir string
	dev      bool
}

func (f *manifestFlags) declare(c *command) {
	c.StringVar(&f.manifest, "manifest", "hooks.toml", "the manifest, a `FILE`")
	c.StringVar(&f.env, "env", "", "lay hooks.`ENV`.toml over it")
	c.StringVar(&f.cacheDir, "cache-dir", "", "the `FOLDER` for compiled modules (default: hookhost in the user's cache folder)")
	c.BoolVar(&f.dev, "dev", false, "take modules that the manifest does not pin by their hash")
	c.BoolVar(&c.json, "json", false, "write JSON, also of what is wrong with the manifest")
}

// optional lets the manifest be left out.
func (f *manifestFlags) optional(c *command) {
	f.manifest, c.Lookup("manifest").DefValue = "", ""
}

// inspect refuses what host.Open would refuse, and tells which hooks the
// module of a stage asks for.
func (f *manifestFlags) inspect(ctx context.Context, c *command) (*manifest.Manifest, func(*manifest.Stage) abi.HookSet, error) {
	m, wanted, err := host.Inspect(ctx, f.manifest, host.Options{
		Dev: f.dev, Env: f.env, CacheDir: f.cacheDir, Log: slog.New(slog.DiscardHandler), Compiling: c.compiling, CacheWarning: c.cacheWarning,
	})
	return m, func(s *manifest.Stage) abi.HookSet { return wanted[s.Spec.Name] }, err
}

func showPlan(ctx context.Context, c *command) error {
	var f manifestFlags
	f.declare(c)
	if err := c.parse("plan [flags]", "Loads a manifest and its modules as a host would, and shows for each hook point\nwhich stages run, in which order, and what happens when one of them fails."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	m, wanted, err := f.inspect(ctx, c)
	if err != nil {
		return err
	}
	plan := manifest.NewEffective(m, wanted)
	if c.json {
		return writeJSON(c, plan)
	}
	fmt.Fprint(c.stdout, visibleLines(plan.String()))
	return nil
}
