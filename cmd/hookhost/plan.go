package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host"
)

// manifestFlags are those of the verbs that read a manifest.
type manifestFlags struct {
	manifest string
	env      string
	json     bool
}

func (f *manifestFlags) declare(c *command) {
	c.StringVar(&f.manifest, "manifest", "hooks.toml", "the manifest, a `FILE`")
	c.StringVar(&f.env, "env", "", "lay hooks.`ENV`.toml over it")
	c.BoolVar(&f.json, "json", false, "write JSON")
}

func writeJSON(c *command, v any) error {
	enc := json.NewEncoder(c.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func showPlan(ctx context.Context, c *command) error {
	var f manifestFlags
	f.declare(c)
	cacheDir := c.String("cache-dir", "", "the `FOLDER` for compiled modules (default: hookhost in the user's cache folder)")
	if err := c.parse("plan [flags]", "Loads a manifest and its modules as a host would, and shows for each hook point\nwhich stages run, in which order, and what happens when one of them fails."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	m, wanted, err := host.Inspect(ctx, f.manifest, host.Options{
		Dev: true, Env: f.env, CacheDir: *cacheDir, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	plan := manifest.NewEffective(m, func(s *manifest.Stage) abi.HookSet { return wanted[s.Spec.Name] })
	if f.json {
		return writeJSON(c, plan)
	}
	fmt.Fprint(c.stdout, plan)
	return nil
}
