package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fifo makes a pipe that nobody writes to.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe.toml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

func TestWhatIsNoRegularFileIsNotRead(t *testing.T) {
	for name, path := range map[string]string{"a device": "/dev/zero", "a pipe": fifo(t), "a folder": t.TempDir()} {
		dir := t.TempDir()
		base := filepath.Join(dir, "hooks.toml")
		for what, read := range map[string]func() error{
			"a manifest": func() error { _, err := Load(path, Options{}); return err },
			"an overlay": func() error { _, err := Load("testdata/good/full.toml", Options{Overlay: path}); return err },
			"plans":      func() error { _, err := LoadPlans(path); return err },
			"to pin":     func() error { _, err := Pin(path); return err },
			"a module": func() error {
				_, err := Parse(base, []byte(strings.Replace(oneStage("", ""), "hook.wasm", path, 1)), Options{Dev: true})
				return err
			},
			"a secret": func() error { _, err := Secret{File: path}.Read(); return err },
		} {
			err := read()
			require.Error(t, err, "%s as %s", name, what)
			assert.ErrorContains(t, err, "not a regular file", "%s as %s", name, what)
			assert.ErrorContains(t, err, path, "%s as %s", name, what)
		}
	}
}

func TestAFileOfAnySizeIsReadUpToItsBound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hooks.toml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("#", maxFile)), 0o600))
	data, err := ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, data, maxFile)

	require.NoError(t, os.Truncate(path, 1<<40)) // more than there is memory for
	_, err = Load(path, Options{})
	require.ErrorContains(t, err, "hooks.toml: cannot be read: more than 1048576 bytes")
}

func TestALinkToAFileIsRead(t *testing.T) {
	link := filepath.Join(t.TempDir(), "plans.toml")
	target, err := filepath.Abs("testdata/good/plans.toml")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(target, link))
	_, err = LoadPlans(link)
	require.NoError(t, err)
}

func TestPlansThatAreNoTOMLAreNotShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passwd")
	require.NoError(t, os.WriteFile(path, []byte("geheim:x:0:0:\n"), 0o600))
	_, err := LoadPlans(path)
	var all *Errors
	require.ErrorAs(t, err, &all)
	assert.Contains(t, all.Render(), "passwd:1:7: not TOML: ")
	assert.NotContains(t, all.Render(), "geheim")
}
