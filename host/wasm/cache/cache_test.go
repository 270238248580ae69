package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheNextStartFindsWhatThisOneCompiled(t *testing.T) {
	first := start(t, t.TempDir())
	first.compiles(1)
	first.whole(1)
	second := start(t, first.dir)
	second.compiles(1)

	assert.Equal(t, 1, first.rewritten)
	assert.Zero(t, second.rewritten)
	second.compiles(2)
	assert.Equal(t, 1, second.rewritten, "another module is another entry")
	assert.Empty(t, first.log.String()+second.log.String())
}

func TestAnotherRewriterIsAnotherEntry(t *testing.T) {
	first := start(t, t.TempDir())
	first.compiles(1)
	second := start(t, first.dir)
	second.cache = New(Options{Dir: first.dir, Version: "8"})
	second.compiles(1)

	assert.Equal(t, 1, second.rewritten)
	first.whole(1)
	second.whole(1)
}

func TestCodeIsSharedUntilTheLastHolderClosesIt(t *testing.T) {
	b := start(t, t.TempDir())
	first, err := b.cache.Compile(t.Context(), b.source(1))
	require.NoError(t, err)
	second, err := b.cache.Compile(t.Context(), b.source(1))
	require.NoError(t, err)
	assert.Same(t, first, second)
	assert.Equal(t, 1, b.rewritten)

	links := 0
	broken := errors.New("broken")
	for _, code := range []*Code{first, second} {
		require.ErrorIs(t, code.Link(func() error { links++; return broken }), broken)
	}
	assert.Equal(t, 1, links)

	require.NoError(t, first.Close(t.Context()))
	answer, err := ask(t.Context(), second)
	require.NoError(t, err)
	assert.Equal(t, byte(2), answer)
	require.NoError(t, second.Close(t.Context()))
	assert.Zero(t, b.cache.InUse())
	_, err = ask(t.Context(), second)
	assert.Error(t, err, "it is freed")
}

func TestAModuleThatManyWantAtOnceIsCompiledOnce(t *testing.T) {
	b := start(t, t.TempDir())
	codes := make([]*Code, 8)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() {
			var err error
			codes[i], err = b.cache.Compile(t.Context(), b.source(1))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	for _, code := range codes {
		require.Same(t, codes[0], code)
		require.NoError(t, code.Close(t.Context()))
	}
	assert.Equal(t, 1, b.rewritten)
	assert.Zero(t, b.cache.InUse())
}

func TestDamageIsFoundAndMended(t *testing.T) {
	first := start(t, t.TempDir())
	first.compiles(1)
	names := files(t, first.entry(1))
	require.Len(t, names, 4, "the module, the notes, the code and the sums")
	for _, name := range names {
		path := first.entry(1).file(name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		flipped := func(at int) error {
			data := bytes.Clone(whole)
			data[at] ^= 0x10
			return os.WriteFile(path, data, 0o600)
		}
		for how, damage := range map[string]func() error{
			"emptied":            func() error { return os.Truncate(path, 0) },
			"truncated":          func() error { return os.Truncate(path, int64(len(whole))-1) },
			"longer":             func() error { return os.WriteFile(path, append(bytes.Clone(whole), 0), 0o600) },
			"first byte":         func() error { return flipped(0) },
			"byte in the middle": func() error { return flipped(len(whole) / 2) },
			"last byte":          func() error { return flipped(len(whole) - 1) },
			"lost":               func() error { return os.Remove(path) },
			"a folder":           func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		} {
			t.Run(filepath.Base(name)+"/"+how, func(t *testing.T) {
				require.NoError(t, damage())
				b := start(t, first.dir)
				b.compiles(1)
				b.whole(1)
				assert.Equal(t, 1, b.rewritten)
				assert.Empty(t, b.log.String(), "it is mended: nobody has to do anything")
			})
		}
	}
	t.Run("code of another origin", func(t *testing.T) {
		require.NoError(t, os.WriteFile(first.entry(1).file("code/more"), []byte("code"), 0o600))
		b := start(t, first.dir)
		b.compiles(1)
		b.whole(1)
		assert.Equal(t, 1, b.rewritten)
	})
	t.Run("a file in its place", func(t *testing.T) {
		first.entry(1).remove()
		require.NoError(t, os.WriteFile(string(first.entry(1)), nil, 0o600))
		b := start(t, first.dir)
		b.compiles(1)
		b.whole(1)
	})
}

func TestWhereTheDiskCannotBeUsedOneWarningSaysSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, dir := range map[string]string{"no folder": "", "a file in the way": filepath.Join(file, "below")} {
		t.Run(name, func(t *testing.T) {
			b := start(t, dir)
			for number := range byte(5) {
				b.compiles(number)
			}
			assert.Equal(t, 1, strings.Count(b.log.String(), "level=WARN"), "%s", b.log.String())
		})
	}
	t.Run("others may write to it", func(t *testing.T) {
		first := start(t, t.TempDir())
		first.compiles(1)
		require.NoError(t, os.Chmod(first.cache.folder, 0o777))
		b := start(t, first.dir)
		b.compiles(1)
		assert.Equal(t, 1, b.rewritten, "what stands there is not run")
		assert.Contains(t, b.log.String(), "other users may write to it")
	})
}

func TestWhatIsWrongWithAModuleIsNotBlamedOnTheDisk(t *testing.T) {
	b := start(t, t.TempDir())
	broken := errors.New("unknown opcode")
	_, err := b.cache.Compile(t.Context(), Source{Module: answering(1, 1), Rewrite: func([]byte) (Rewritten, error) { return Rewritten{}, broken }})
	require.ErrorIs(t, err, broken)

	_, err = b.cache.Compile(t.Context(), Source{Module: answering(1, 1)[:40]})
	require.Error(t, err)

	assert.Empty(t, b.log.String())
	assert.Zero(t, b.cache.InUse())
	b.compiles(1)
	b.whole(1)
}

func TestWhoGoesAwayDoesNotWaitForATurn(t *testing.T) {
	b := start(t, t.TempDir())
	for range cap(b.cache.turns) {
		done, err := b.cache.turn(t.Context())
		require.NoError(t, err)
		defer done()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.cache.Compile(ctx, b.source(1))
	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, b.rewritten)
}

func TestCompilingThatTakesLongIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		c := New(Options{Version: "7", Log: slog.New(slog.DiscardHandler), Slow: func(name string, size int) {
			told = append(told, fmt.Sprintf("%s: %d", name, size))
		}})
		compile := func(name string, takes time.Duration) {
			code, err := c.Compile(t.Context(), Source{Name: name, Module: answering(1, 1), Rewrite: func(module []byte) (Rewritten, error) {
				time.Sleep(takes)
				return Rewritten{Module: module}, nil
			}})
			require.NoError(t, err)
			require.NoError(t, code.Close(t.Context()))
		}
		compile("quick.wasm", SlowAfter-time.Millisecond)
		compile("slow.wasm", SlowAfter+time.Millisecond)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []string{fmt.Sprintf("slow.wasm: %d", len(answering(1, 1)))}, told)
	})
}

func TestEntriesThatNobodyUsedForAMonthAreDeleted(t *testing.T) {
	dir := t.TempDir()
	old := start(t, dir)
	old.cache = New(Options{Dir: dir, Version: "6"})
	b := start(t, dir)
	for number := range byte(3) {
		old.compiles(number)
		b.compiles(number)
	}
	foreign := filepath.Join(dir, "notes", "mine.txt")
	require.NoError(t, os.Mkdir(filepath.Dir(foreign), 0o700))
	require.NoError(t, os.WriteFile(foreign, nil, 0o600))
	aged := func(path string, age time.Duration) {
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, then, then))
	}
	for number := range byte(3) {
		aged(string(old.entry(number)), MaxAge+time.Hour)
		aged(string(b.entry(number)), MaxAge-time.Hour)
	}
	aged(filepath.Dir(foreign), 2*MaxAge)
	aged(foreign, 2*MaxAge)
	aged(string(b.entry(1)), MaxAge+time.Hour)
	b.compiles(1) // which counts as use, and adds nothing

	b.compiles(9)

	assert.NoDirExists(t, old.cache.folder, "all of the old version")
	for _, number := range []byte{0, 1, 2, 9} {
		b.whole(number)
	}
	assert.FileExists(t, foreign, "no entry")
}

func TestWhatIsNoEntryStays(t *testing.T) {
	dir := t.TempDir()
	old := start(t, dir)
	old.cache = New(Options{Dir: dir, Version: "6"})
	old.compiles(1)
	elsewhere := t.TempDir()
	b := start(t, dir)
	b.compiles(1)
	unmarked := strings.Replace(generation("5"), "linux", "plan9", 1)
	hash := filepath.Base(string(b.entry(1)))
	var strangers []string
	for _, name := range []string{
		"code-review/notes/thesis.txt",
		"code-review/hookhost-cache",
		"code-review/" + hash + "/thesis.txt",
		unmarked + "/" + hash + "/thesis.txt",
		generation("6") + "/notes/thesis.txt",
		generation("6") + "/build-plan/thesis.txt",
		generation("7") + "/" + hash + ".bak/thesis.txt",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
		strangers = append(strangers, path)
	}
	empty := filepath.Join(dir, "code-empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	linked := filepath.Join(elsewhere, "thesis.txt")
	require.NoError(t, os.WriteFile(linked, nil, 0o600))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, generation("7"), strings.Repeat("0", 64))))
	for _, path := range append([]string{linked, string(old.entry(1)) + "/notes"}, strangers...) {
		then := time.Now().Add(-2 * MaxAge)
		require.NoError(t, os.Chtimes(path, then, then))
		require.NoError(t, os.Chtimes(filepath.Dir(path), then, then))
	}

	b.compiles(2)

	for _, path := range append(strangers, linked) {
		assert.FileExists(t, path)
	}
	assert.DirExists(t, empty)
	assert.NoDirExists(t, string(old.entry(1)), "an entry beside them is one")
}

func TestWhatAProcessStillBuildsStaysWhateverTheClockSays(t *testing.T) {
	b := start(t, t.TempDir())
	b.compiles(1)
	then := time.Now().Add(-2 * MaxAge)
	building, err := b.cache.newEntry()
	require.NoError(t, err)
	letGo := hold(string(building))
	require.NoError(t, os.Chtimes(string(building), then, then))

	b.compiles(2)
	assert.DirExists(t, string(building))

	letGo()
	b.compiles(3)
	assert.NoDirExists(t, string(building), "nobody builds it any more")
}

func TestTheNameOfAGenerationHasItsForm(t *testing.T) {
	for _, version := range []string{"7", "1.2"} {
		assert.Regexp(t, generationName, generation(version))
	}
}

func TestEntriesAreBoundedInSize(t *testing.T) {
	b := start(t, t.TempDir())
	for number := range byte(4) {
		b.compiles(number)
	}
	for number := range byte(4) {
		then := time.Now().Add(-time.Duration(10-number) * time.Hour)
		require.NoError(t, os.Truncate(b.entry(number).file(notesFile), MaxSize*2/5)) // of holes, which take no room
		require.NoError(t, os.Chtimes(string(b.entry(number)), then, then))
	}

	b.compiles(9)

	for number, stays := range []bool{false, false, true, true} {
		_, err := os.Stat(string(b.entry(byte(number))))
		assert.Equal(t, stays, err == nil, "entry %d: the last used ones stay", number)
	}
	b.whole(9)
}
