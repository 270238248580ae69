package main

import (
	"context"
	"fmt"

	"github.com/hookhost/hookhost/chain/manifest"
)

func lint(ctx context.Context, c *command) error {
	var f manifestFlags
	f.declare(c)
	agents := c.Int("agents", 0, "how many agents the program has, `N`, if that is known")
	if err := c.parse("lint [flags]", "Loads a manifest and its modules as a host would, and warns of what it allows and\nnobody means. Exits with 1 where it finds something that cannot be meant."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	m, wanted, err := f.inspect(ctx, c)
	if err != nil {
		return err
	}
	in := manifest.LintInput{Agents: *agents, Hooks: wanted}
	if m.Limits.Plans != "" {
		if in.Plans, err = manifest.LoadPlans(m.Limits.Plans); err != nil {
			return err
		}
	}
	findings := manifest.Lint(m, in)
	if c.json {
		err = writeJSON(c, findings)
	}
	for _, found := range findings {
		if !c.json {
			fmt.Fprintln(c.stdout, visible(found.String()))
		}
		if found.Level == manifest.Fault {
			err = errFailed
		}
	}
	return err
}
