package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(sharerVariable); dir != "" {
		if err := share(dir, sharedStarts); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// answering is a module whose function "answer" gives a number up to 63, beside
// others that nobody calls.
func answering(number byte, others int) []byte {
	prefixed := func(content []byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(len(content))), content...)
	}
	section := func(id byte, content ...[]byte) []byte {
		return append([]byte{id}, prefixed(slices.Concat(content...))...)
	}
	count := binary.AppendUvarint(nil, uint64(1+others))
	answer := []byte{0, 0x42, number, 0x0b}                                                                           // i64.const
	other := slices.Concat([]byte{0, 0x42, 1}, bytes.Repeat([]byte{0x42, 7, 0x7e, 0x42, 3, 0x7c}, 100), []byte{0x0b}) // i64.mul, i64.add
	return slices.Concat(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte{1, 0x60, 0, 1, 0x7e}), // () -> i64
		section(3, count, make([]byte, 1+others)),
		section(7, []byte("\x01\x06answer\x00\x00")),
		section(10, count, prefixed(answer), bytes.Repeat(prefixed(other), others)),
	)
}

// ask instantiates the code and calls it.
func ask(ctx context.Context, code *Code) (byte, error) {
	module, err := code.Engine.InstantiateModule(ctx, code.Module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return 0, err
	}
	defer module.Close(ctx)
	results, err := module.ExportedFunction("answer").Call(ctx)
	if err != nil {
		return 0, err
	}
	return byte(results[0]), nil
}

// bench is a cache and what was seen of it.
type bench struct {
	t         *testing.T
	dir       string
	log       bytes.Buffer
	cache     *Cache
	rewritten int // how often a module was
}

// start is a process that starts with the cache in dir.
func start(t *testing.T, dir string) *bench {
	b := &bench{t: t, dir: dir}
	b.cache = New(Options{Dir: dir, Version: "7", Log: slog.New(slog.NewTextHandler(&b.log, nil))})
	return b
}

func (b *bench) source(number byte) Source {
	return Source{Name: "answering.wasm", Module: answering(number, 3), Rewrite: func(module []byte) (Rewritten, error) {
		b.rewritten++
		return Rewritten{Module: answering(number+1, 3), Notes: fmt.Appendf(nil, "one more than %d", number)}, nil
	}}
}

// compiles the module of a number, which is rewritten to one more.
func (b *bench) compiles(number byte) {
	b.t.Helper()
	code, err := b.cache.Compile(b.t.Context(), b.source(number))
	require.NoError(b.t, err)
	answer, err := ask(b.t.Context(), code)
	require.NoError(b.t, err)
	require.Equal(b.t, number+1, answer)
	require.Equal(b.t, fmt.Sprintf("one more than %d", number), string(code.Notes))
	require.NoError(b.t, code.Close(b.t.Context()))
	require.Zero(b.t, b.cache.InUse())
}

// entry is where the module of a number has its place.
func (b *bench) entry(number byte) entry { return b.cache.entry(keyOf(answering(number, 3))) }

// files are those of an entry, by their names in it.
func files(t *testing.T, e entry) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(string(e), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(string(e), path)
			names = append(names, name)
		}
		return err
	}))
	return names
}

// whole expects the entry to be so, and nothing else to lie about.
func (b *bench) whole(number byte) {
	b.t.Helper()
	_, err := b.entry(number).read()
	require.NoError(b.t, err)
	left, err := filepath.Glob(filepath.Join(b.dir, "*", buildName))
	require.NoError(b.t, err)
	require.Empty(b.t, left)
}
