package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
)

func version(_ context.Context, c *command) error {
	if err := c.parse("version", "Shows the version of the module that hookhost was built from, and of Go."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	of, known := debug.ReadBuildInfo()
	if !known {
		of = new(debug.BuildInfo)
	}
	fmt.Fprintf(c.stdout, "hookhost %s %s\n", cmp.Or(of.Main.Version, "(devel)"), cmp.Or(of.GoVersion, "of an unknown Go"))
	return nil
}
