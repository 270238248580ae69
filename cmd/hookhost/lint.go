package main

import (
	"context"
	"fmt"

	"github.com/hookhost/hookhost/chain/manifest"
)

func lint(_ context.Context, c *command) error {
	var f manifestFlags
	f.declare(c)
	agents := c.Int("agents", 0, "how many agents the program has, `N`, if that is known")
	if err := c.parse("lint [flags]", "Warns of what a manifest allows and nobody means. Exits with 1 where it finds\nsomething that cannot be meant."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	m, err := manifest.Load(f.manifest, manifest.Options{Dev: true, Env: f.env})
	if err != nil {
		return err
	}
	in := manifest.LintInput{Agents: *agents}
	if m.Limits.Plans != "" {
		if in.Plans, err = manifest.LoadPlans(m.Limits.Plans); err != nil {
			return err
		}
	}
	findings := manifest.Lint(m, in)
	if f.json {
		err = writeJSON(c, findings)
	}
	for _, found := range findings {
		if !f.json {
			fmt.Fprintln(c.stdout, found)
		}
		if found.Level == manifest.Fault {
			err = errFailed
		}
	}
	return err
}
