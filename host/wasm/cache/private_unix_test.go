//go:build unix

package cache

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFolderThatOthersMayReplaceIsNotUsed(t *testing.T) {
	writable := func(t *testing.T, dir string) { require.NoError(t, os.Chmod(dir, 0o777)) }
	others := func(t *testing.T, dir string) {
		if os.Geteuid() != 0 {
			t.Skip("only root gives a folder away")
		}
		require.NoError(t, os.Lchown(dir, 65534, 65534))
	}
	link := func(t *testing.T, path string) {
		target := filepath.Join(t.TempDir(), "target")
		require.NoError(t, os.Rename(path, target))
		require.NoError(t, os.Symlink(target, path))
	}
	both := func(one, two func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) { one(t, dir); two(t, dir) }
	}
	for name, test := range map[string]struct {
		of   func(b *bench, top string) string
		harm func(*testing.T, string)
		why  string
	}{
		"entries, written by others":         {ofEntries, writable, "other users may write to it"},
		"entries, of another":                {ofEntries, others, "belongs to another user"},
		"entries, a link":                    {ofEntries, link, "no folder"},
		"parent, written by others":          {ofCache, writable, "other users may write to it"},
		"parent, of another":                 {ofCache, others, "belongs to another user"},
		"parent, a link of another":          {ofCache, both(link, others), "belongs to another user"},
		"parent's parent, written by others": {ofTop, writable, "other users may write to it"},
	} {
		t.Run(name, func(t *testing.T) {
			top := filepath.Join(t.TempDir(), "top")
			first := start(t, filepath.Join(top, "cache"))
			first.compiles(1)
			first.whole(1)
			test.harm(t, test.of(first, top))

			b := start(t, first.dir)
			b.compiles(1)
			b.compiles(2)
			assert.Equal(t, 2, b.rewritten, "what stands there is not run")
			assert.Equal(t, 1, strings.Count(b.log.String(), "level=WARN"), "%s", b.log.String())
			assert.Contains(t, b.log.String(), test.why)
		})
	}
}

func ofEntries(b *bench, _ string) string { return b.cache.folder }
func ofCache(b *bench, _ string) string   { return b.dir }
func ofTop(_ *bench, top string) string   { return top }

func TestALinkIsFollowedWhereNobodyElseMayTurnIt(t *testing.T) {
	sticky := t.TempDir()
	require.NoError(t, os.Chmod(sticky, 0o777|os.ModeSticky))
	target := filepath.Join(sticky, "target")
	require.NoError(t, os.Mkdir(target, 0o700))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(target, link))
	first := start(t, link)
	first.compiles(1)
	second := start(t, link)
	second.compiles(1)
	assert.Zero(t, second.rewritten)
	assert.Empty(t, first.log.String()+second.log.String())

	unsafe := t.TempDir()
	require.NoError(t, os.Rename(target, filepath.Join(unsafe, "target")))
	require.NoError(t, os.Chmod(unsafe, 0o777))
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(filepath.Join(unsafe, "target"), link))
	third := start(t, link)
	third.compiles(1)
	assert.Equal(t, 1, third.rewritten)
	assert.Contains(t, third.log.String(), "other users may write to it", "where it leads counts too")
}

func TestALinkInPlaceOfAnEntryIsNotFollowed(t *testing.T) {
	for name, path := range map[string]string{"entry": "", "file": moduleFile, "sums": sumsFile, "folder": "code"} {
		t.Run(name, func(t *testing.T) {
			first := start(t, t.TempDir())
			first.compiles(1)
			at := filepath.Join(string(first.entry(1)), path)
			target := filepath.Join(t.TempDir(), "target")
			require.NoError(t, os.Rename(at, target))
			require.NoError(t, os.Symlink(target, at))

			b := start(t, first.dir)
			b.compiles(1)
			assert.Equal(t, 1, b.rewritten)
			b.whole(1)
			_, err := os.Stat(target)
			assert.NoError(t, err, "where it led is not ours")
			assert.Empty(t, b.log.String())
		})
	}
}

func TestAnEntryThatCannotBeReadNowIsLeft(t *testing.T) {
	first := start(t, t.TempDir())
	first.compiles(1)

	b := start(t, first.dir)
	withoutFiles(t, func() {
		b.compiles(1)
		b.compiles(1)
	})
	assert.Equal(t, 2, b.rewritten)
	assert.Equal(t, 1, strings.Count(b.log.String(), "level=WARN"), "%s", b.log.String())
	assert.Contains(t, b.log.String(), "too many open files")

	b.whole(1)
	b.compiles(1)
	assert.Equal(t, 2, b.rewritten, "the entry serves again")
	b.compiles(2)
	b.whole(2)
}

// withoutFiles has a process that may open no more of them.
func withoutFiles(t *testing.T, do func()) {
	t.Helper()
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	none := before
	none.Cur = 3
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) }()
	do()
}
