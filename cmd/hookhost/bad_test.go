package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host/chaintest"
)

var update = flag.Bool("update", false, "write the .err files")

// Each file in testdata/bad has a fault that only loading its modules shows.
// The .err file beside it holds what plan says of it. Fixtures that were built
// anew have to be pinned anew: hookhost pin.
func TestPlanRefusesWhatAHostRefuses(t *testing.T) {
	cache := chaintest.CacheDir()
	t.Chdir(filepath.Join("testdata", "bad"))
	files, err := filepath.Glob("*.toml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".toml"), func(t *testing.T) {
			got := refused(t, "plan", "--manifest", file, "--cache-dir", cache)
			assert.Regexp(t, `^`+file+`:\d+:\d+: stage\[`, got, "a place in the file")
			golden := strings.TrimSuffix(file, ".toml") + ".err"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// The bad manifests of chain/manifest are refused before a module is loaded.
func TestPlanRefusesWhatTheManifestRefuses(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "chain", "manifest"))
	files, err := filepath.Glob("testdata/bad/*.toml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, ".prod.toml") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			args := []string{"plan", "--manifest", file}
			if _, err := os.Stat(strings.TrimSuffix(file, ".toml") + ".prod.toml"); err == nil {
				args = append(args, "--env", "prod")
			}
			want, err := os.ReadFile(strings.TrimSuffix(file, ".toml") + ".err")
			require.NoError(t, err)
			assert.Equal(t, string(want), refused(t, args...))
		})
	}
}

// refused runs a command that has to fail and gives what it says.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitFailed, run(t.Context(), args, &stdout, &stderr))
	assert.Empty(t, stdout.String())
	return stderr.String()
}
