package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hookhost": func() {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}})
}

// TestScripts runs the command line as a person types it. In the scripts
// $ROOT is the repository and $CACHE the folder of compiled modules.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(root, "guests", "redact", "redact.wasm"))
	require.NoError(t, err, "the guests have to be built first: make guests")
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("ROOT", root)
			env.Setenv("CACHE", cacheDir())
			return nil
		},
	})
}

func cacheDir() string {
	if dir := os.Getenv("HOOKHOST_TEST_CACHE"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), "hookhost-test-cache")
}
