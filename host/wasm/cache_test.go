package wasm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host/wasm/meter"
)

// entryFiles are the files of the only entry in a cache folder.
func entryFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := filepath.Glob(filepath.Join(dir, "*", strings.Repeat("[0-9a-f]", 64)))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(entries[0], func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(entries[0], path)
			files[name] = path
		}
		return err
	}))
	return files
}

func TestCacheOnDiskIsUsedAgain(t *testing.T) {
	dir := t.TempDir()
	infos := func() map[string]os.FileInfo {
		b := newBench(t, "ready")
		b.runtime = New(Options{CacheDir: dir})
		b.loads().answers("ready")
		found := map[string]os.FileInfo{}
		for name, path := range entryFiles(t, dir) {
			info, err := os.Stat(path)
			require.NoError(t, err)
			found[name] = info
		}
		return found
	}

	before, after := infos(), infos()

	require.Len(t, after, len(before))
	for name, info := range before {
		assert.True(t, os.SameFile(info, after[name]), "%s is what it was: not compiled again", name)
	}
}

func TestCacheOnDiskSurvivesDamage(t *testing.T) {
	dir := t.TempDir()
	load := func(t *testing.T) {
		b := newBench(t, "ready")
		b.runtime = New(Options{CacheDir: dir})
		b.loads().answers("ready")
	}
	load(t)
	for name, path := range entryFiles(t, dir) {
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		if len(want) == 0 {
			continue // the notes, of which there are none
		}
		for how, damage := range map[string]func() error{
			"emptied":   func() error { return os.Truncate(path, 0) },
			"truncated": func() error { return os.Truncate(path, int64(len(want)/2)) },
			"lost":      func() error { return os.Remove(path) },
		} {
			t.Run(filepath.Base(name)+" "+how, func(t *testing.T) {
				require.NoError(t, damage())
				load(t)
				have, err := os.ReadFile(entryFiles(t, dir)[name])
				require.NoError(t, err)
				assert.Equal(t, want, have, "built again")
			})
		}
	}
}

func TestCacheFallsBackToMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, dir := range map[string]string{"no folder": "", "not to be written": filepath.Join(file, "below")} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := New(Options{CacheDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for _, module := range []string{"ready", "continue", "prints"} {
				b := newBench(t, module)
				b.runtime = r
				_, err := b.loads().call("a")
				require.NoError(t, err)
			}
			assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), "%s", log.String())
		})
	}
}

// outputOfRewriter is what the rewriter of meter.Version makes of a few
// modules, as a SHA-256.
var outputOfRewriter = struct{ version, sum string }{"4", "2aa7ac9ed5ab367e50d648e7cf238784acacbd0bbe5d8f0e6e9003d1263f3ae3"}

// TestTheVersionOfTheRewriterIsRaisedWithItsOutput keeps a change of the
// rewriter, such as one that closes a hole, from being without effect where
// code is on disk already.
func TestTheVersionOfTheRewriterIsRaisedWithItsOutput(t *testing.T) {
	h := sha256.New()
	for _, name := range []string{"loop", "mask_c", "memory_refused", "stack_bomb", "table_from_initialize", "trap_in_start_section"} {
		rewritten, err := rewrite(fixture(t, name))
		require.NoError(t, err)
		h.Write(rewritten.Module)
		h.Write(rewritten.Notes)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if outputOfRewriter.sum != sum {
		require.NotEqual(t, outputOfRewriter.version, meter.Version, "the output is another one: raise meter.Version, and put it here with the sum %s", sum)
	}
	assert.Equal(t, outputOfRewriter.version, meter.Version, "put it here, with the sum %s", sum)
}
