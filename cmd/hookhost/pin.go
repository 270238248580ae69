package main

import (
	"context"
	"fmt"

	"github.com/hookhost/hookhost/chain/manifest"
)

func pin(_ context.Context, c *command) error {
	file := c.String("manifest", "hooks.toml", "the manifest, a `FILE`")
	c.BoolVar(&c.json, "json", false, "write JSON, also of what is wrong with the manifest")
	if err := c.parse("pin [flags]", "Writes the hash of each stage's module into the manifest and leaves the rest of\nits text alone. A host refuses modules whose bytes have another hash."); err != nil {
		return err
	}
	if err := c.noArguments(); err != nil {
		return err
	}
	pinned, err := manifest.Pin(*file)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c, append([]manifest.Pinned{}, pinned...)) // an empty list is one
	}
	if len(pinned) == 0 {
		fmt.Fprintln(c.stdout, "nothing to change: every hash is the module's")
	}
	for _, p := range pinned {
		fmt.Fprintf(c.stdout, "stage[%s] sha256 = %q\n", p.Stage, p.New)
	}
	return nil
}
