package cache

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAFolderThatIsOnlyReadServesWhatItHolds goes as a user that may read the
// folder and not write to it, which root may.
func TestAFolderThatIsOnlyReadServesWhatItHolds(t *testing.T) {
	first := start(t, filepath.Join(t.TempDir(), "cache"))
	first.compiles(1)
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(first.dir)), 0o755))
	require.NoError(t, filepath.WalkDir(first.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return os.Chmod(path, 0o444)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // so that it can be removed
		return os.Chmod(path, 0o555)
	}))
	asNobody(t)

	b := start(t, first.dir)
	for range 3 {
		b.compiles(1)
	}
	assert.Zero(t, b.rewritten, "it is there")
	assert.Empty(t, b.log.String())
	for number := range byte(4) {
		b.compiles(2 + number)
	}
	assert.Equal(t, 4, b.rewritten)
	assert.Equal(t, 1, strings.Count(b.log.String(), "level=WARN"), "%s", b.log.String())
	assert.Contains(t, b.log.String(), "permission denied")
}

// asNobody takes root's rights to files from the test's thread.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	require.NoError(t, syscall.Setfsuid(nobody))
	t.Cleanup(func() {
		_ = syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}
