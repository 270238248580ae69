package manifest

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the .err files")

// Each file in testdata/bad breaks one rule; the .err file beside it holds the
// errors as a person sees them. NAME.prod.toml is the overlay of NAME.toml.
func TestBadManifests(t *testing.T) {
	forEach(t, "testdata/bad", func(t *testing.T, path string) error {
		o := Options{}
		if _, err := os.Stat(strings.TrimSuffix(path, ".toml") + ".prod.toml"); err == nil {
			o.Env = "prod"
		}
		_, err := Load(path, o)
		return err
	})
}

func TestBadPlans(t *testing.T) {
	forEach(t, "testdata/badplans", func(t *testing.T, path string) error {
		_, err := LoadPlans(path)
		return err
	})
}

func forEach(t *testing.T, folder string, load func(*testing.T, string) error) {
	files, err := filepath.Glob(folder + "/*.toml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		if strings.HasSuffix(path, ".prod.toml") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".toml"), func(t *testing.T) {
			var all *Errors
			require.ErrorAs(t, load(t, path), &all)
			got := all.Render()
			assert.NotContains(t, got, "geheim", "a secret is never shown")
			for _, one := range all.All {
				assert.Positive(t, one.Line, "%s has no position", one)
			}
			golden := strings.TrimSuffix(path, ".toml") + ".err"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func TestMissingFiles(t *testing.T) {
	_, err := Load("testdata/nowhere.toml", Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load("testdata/good/full.toml", Options{Env: "nowhere"})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "testdata/good/full.nowhere.toml: cannot be read")
	_, err = Load("testdata/good/full.toml", Options{Env: "../x"})
	require.ErrorContains(t, err, "environment")
	_, err = LoadPlans("testdata/nowhere.toml")
	require.ErrorIs(t, err, os.ErrNotExist)

	_, err = Load("testdata/bad/module_no_file.toml", Options{})
	require.ErrorIs(t, err, os.ErrNotExist, "a module's own error stays behind the fault")
	var one *Error
	require.True(t, errors.As(err, &one))
	assert.Equal(t, "one", one.Stage)
	assert.Equal(t, "module", one.Key)
}
