package image

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNothingIsLeftOfWhatWasFreed(t *testing.T) {
	round := func() {
		first, err := New(16 * wasmPage)
		require.NoError(t, err)
		first.Reallocate(2 * wasmPage)[5] = 1
		i, err := first.Snapshot()
		require.NoError(t, err)
		m, err := i.New(16 * wasmPage)
		require.NoError(t, err)
		i.Close()
		first.Free()
		require.NoError(t, m.Reset())
		m.Free()
	}
	round() // opens what stays open
	before := left(t)
	for range 50 {
		round()
	}
	assert.Equal(t, before, left(t))
}

// left counts the maps of images and the open files that there are.
func left(t *testing.T) (count [2]int) {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	count[0] = strings.Count(string(maps), "hookhost-image")
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	count[1] = len(files)
	return count
}
