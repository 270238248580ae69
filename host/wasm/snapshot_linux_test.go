package wasm

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSnapshotLeavesNoMapBehind(t *testing.T) {
	round := func() {
		b := newBench(t, "keeps_secret").pool(3)
		stage, err := b.runtime.Load(t.Context(), b.cfg, b.services)
		require.NoError(t, err)
		for _, how := range []string{"grow", "exit", "trap", "a", "a"} {
			_, _ = stage.Call(t.Context(), withSecret(how))
		}
		require.NoError(t, stage.Close(t.Context()))
	}
	round()
	before := inUseOfImages(t)
	for range 50 {
		round()
	}
	assert.Equal(t, before, inUseOfImages(t))
}

// inUseOfImages counts the maps of images, and the files that are open.
func inUseOfImages(t testing.TB) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return strings.Count(string(maps), imageMap) + len(files)
}
