package main

import (
	"context"
	"fmt"

	"github.com/hookhost/hookhost/chain/manifest"
)

func pin(_ context.Context, c *command) error {
	var f manifestFlags
	c.StringVar(&f.manifest, "manifest", "hooks.toml", "the manifest, a `FILE`")
	c.BoolVar(&f.json, "json", false, "write JSON")
	if err := c.parse("pin [flags]", "Writes the hash of each stage's module into the manifest and leaves the rest of\nits text alone. A host refuses modules whose bytes have another hash."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	pinned, err := manifest.Pin(f.manifest)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(c, pinned)
	}
	if len(pinned) == 0 {
		fmt.Fprintln(c.stdout, "nothing to change: every hash is the module's")
	}
	for _, p := range pinned {
		fmt.Fprintf(c.stdout, "stage[%s] sha256 = %q\n", p.Stage, p.New)
	}
	return nil
}
