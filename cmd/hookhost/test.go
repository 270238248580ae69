package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookhost/hookhost/host/chaintest"
)

type testFlags struct {
	cacheDir string
	json     bool
	verbose  bool
}

func testScenarios(ctx context.Context, c *command) error {
	var f testFlags
	c.StringVar(&f.cacheDir, "cache-dir", "", "the `FOLDER` for compiled modules (default: hookhost in the user's cache folder)")
	c.BoolVar(&f.json, "json", false, "write one JSON object a line")
	c.BoolVar(&f.verbose, "v", false, "show the trace of each scenario")
	if err := c.parse("test [flags] FILE...", "Plays scenario files against the chain, with a scripted model on a clock of their\nown, and shows what was not as expected. Exits with 1 when anything was not."); err != nil {
		return err
	}
	if c.NArg() == 0 {
		fmt.Fprintln(c.stderr, "hookhost: no FILE to test")
		c.Usage()
		return errUsage
	}
	cache, remove, err := f.cache()
	if err != nil {
		return err
	}
	defer remove()

	passed, failed := 0, 0
	for _, file := range c.Args() {
		scenarios, err := chaintest.Load(file)
		if err != nil {
			report(c.stderr, err)
			failed++
			continue
		}
		for _, s := range scenarios {
			result, err := s.Execute(ctx, chaintest.Options{CacheDir: cache, Compiling: c.compiling, CacheWarning: c.cacheWarning})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(c.stdout, "FAIL  %s\n", visible(s.Name))
				report(c.stderr, err)
				failed++
				continue
			}
			if result.OK() {
				passed++
			} else {
				failed++
			}
			f.write(c, result)
		}
	}
	if !f.json {
		fmt.Fprintf(c.stdout, "%d passed, %d failed\n", passed, failed)
	}
	if failed > 0 {
		return errFailed
	}
	return nil
}

// cache is the folder for compiled modules. Where the user's own cannot be
// written, one for this call alone still spares compiling them again for each
// scenario.
func (f *testFlags) cache() (dir string, remove func(), err error) {
	if f.cacheDir != "" {
		return f.cacheDir, func() {}, nil
	}
	if base, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(base, "hookhost")
		if os.MkdirAll(dir, 0o700) == nil && writable(dir) {
			return dir, func() {}, nil
		}
	}
	dir, err = os.MkdirTemp("", "hookhost-cache-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

func writable(dir string) bool {
	probe, err := os.CreateTemp(dir, "probe")
	if err != nil {
		return false
	}
	_ = probe.Close()
	return os.Remove(probe.Name()) == nil
}

func (f *testFlags) write(c *command, r *chaintest.Report) {
	if f.json {
		if err := json.NewEncoder(c.stdout).Encode(r); err != nil {
			fmt.Fprintln(c.stderr, "hookhost:", err)
		}
		return
	}
	word := "ok  "
	if !r.OK() {
		word = "FAIL"
	}
	fmt.Fprintf(c.stdout, "%s  %-40s %s\n", word, visible(r.Name), r.Took.Round(time.Millisecond))
	for _, failure := range r.Failures {
		for text := range strings.Lines(failure.String()) {
			fmt.Fprintf(c.stdout, "  %s\n", visible(strings.TrimSuffix(text, "\n")))
		}
	}
	if f.verbose {
		for _, line := range r.Trace {
			fmt.Fprintln(c.stdout, "      ", visible(line))
		}
	}
}
