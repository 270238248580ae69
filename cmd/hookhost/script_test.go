package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hookhost": func() {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}})
}

// TestScripts runs the command line as a person types it. In the scripts
// $ROOT is the repository and $CACHE the folder of compiled modules.
func TestScripts(t *testing.T) {
	scripts(t, "script", func(*testscript.Env) error { return nil })
}

// TestRedisScripts does the same with a Redis server. hooks.redis.toml, which
// --env redis lays over a manifest, has the server and a namespace for each
// script.
func TestRedisScripts(t *testing.T) {
	server := redistest.Single(t)
	scripts(t, "redis", func(env *testscript.Env) error {
		store := fmt.Sprintf("[store]\nurl = %q\nnamespace = %q\ntimeout = \"1s\"\n", server.URL(), filepath.Base(env.WorkDir))
		return os.WriteFile(filepath.Join(env.WorkDir, "hooks.redis.toml"), []byte(store), 0o600)
	})
}

func scripts(t *testing.T, folder string, prepare func(*testscript.Env) error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(root, "guests", "redact", "redact.wasm"))
	require.NoError(t, err, "the guests have to be built first: make guests")
	testscript.Run(t, testscript.Params{
		Dir:  filepath.Join("testdata", folder),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"readme": readme},
		Setup: func(env *testscript.Env) error {
			env.Setenv("ROOT", root)
			env.Setenv("CACHE", chaintest.CacheDir())
			for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // for those that run go, without a home
				value, err := exec.Command("go", "env", name).Output()
				if err != nil {
					return err
				}
				env.Setenv(name, strings.TrimSpace(string(value)))
			}
			return prepare(env)
		},
	})
}

// readme is a command of the scripts: `readme SECTION LANGUAGE FILE` writes
// the block of code that stands in that section of README.md.
func readme(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: readme SECTION LANGUAGE FILE")
	}
	_, rest, found := strings.Cut(ts.ReadFile(filepath.Join(ts.Getenv("ROOT"), "README.md")), "\n## "+args[0]+"\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	_, rest, begins := strings.Cut(section, "\n```"+args[1]+"\n")
	block, _, ends := strings.Cut(rest, "\n```\n")
	if !found || !begins || !ends {
		ts.Fatalf("README.md has no block of %s under %q", args[1], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(block+"\n"), 0o600))
}
