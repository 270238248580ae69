package host_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/chaintest"
	"github.com/hookhost/hookhost/host/demo"
)

// loaded is a host that turns go through all the time.
type loaded struct {
	t        *testing.T
	host     *host.Host
	says     string // what every turn has to come to
	turns    atomic.Int64
	failures atomic.Int64 // of a stage
	quiet    sync.RWMutex // held for writing when no turn may be going on
}

// turn is one of a conversation of its own, of which nothing stays: ADK leaves
// contexts behind in the one that it is given, until that is done.
func (b *loaded) turn() {
	b.quiet.RLock()
	defer b.quiet.RUnlock()
	ctx, done := context.WithCancel(b.t.Context())
	defer done()
	root, err := demo.Agent(demo.LLM, &demo.Model{Replies: []demo.Reply{{Text: "4111 1111 1111 1111"}}})
	if !assert.NoError(b.t, err) {
		return
	}
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{b.host.Plugin()}},
	})
	if !assert.NoError(b.t, err) {
		return
	}
	out := demo.Run(ctx, r, demo.Turn{Text: "hi"})
	assert.NoError(b.t, out.Err())
	assert.Equal(b.t, []string{b.says}, out.Texts())
	b.turns.Add(1)
}

// holds is what the process does when no turn goes on and every chain that was
// replaced is closed.
type holds struct {
	heap    int64 // bytes that live
	outside int64 // bytes resident that are not the heap's: guests and their code

	mappings, images, goroutines int
}

// What lives is counted, and not the spans of the heap that are in use: those
// tell how turns that run at the same time scatter what lives.
func (b *loaded) holds() (h holds) {
	b.quiet.Lock()
	defer b.quiet.Unlock()
	require.Eventually(b.t, func() bool { runs, _ := b.host.Open(); return runs == 0 }, 10*time.Second, time.Millisecond)
	b.host.AwaitRetired()
	for range 4 {
		debug.FreeOSMemory() // also runs finalizers
		time.Sleep(25 * time.Millisecond)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	h.heap, h.goroutines = int64(stats.HeapAlloc), runtime.NumGoroutine()
	if runtime.GOOS != "linux" {
		return h
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(b.t, err)
	statm, err := os.ReadFile("/proc/self/statm")
	require.NoError(b.t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	require.NoError(b.t, err)
	h.mappings, h.images = bytes.Count(maps, []byte("\n")), bytes.Count(maps, []byte("hookhost-image"))
	h.outside = pages*int64(os.Getpagesize()) - int64(stats.HeapSys-stats.HeapReleased)
	return h
}

// TestReloadUnderLoad replaces the chain over and over, each time by a module
// of other bytes that does the same, while turns go on.
func TestReloadUnderLoad(t *testing.T) {
	for _, tt := range []struct {
		name, module, stage, says string
		reloads                   int
	}{
		{"a small guest", fixture(t, "ready"), "role = \"responder\"\nhooks = [\"before_model\"]\n", "ready", 1000},
		{"a Go guest", module(t, "redact"), "role = \"transformer\"\n", "[CARD]", 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reloads := tt.reloads
			if testing.Short() {
				reloads /= 10
			}
			dir := t.TempDir()
			code, err := os.ReadFile(tt.module)
			require.NoError(t, err)
			for i := range 2 {
				custom := []byte{0, 2, 1, byte('a' + i)} // a section that means nothing
				require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".wasm"), slices.Concat(code, custom), 0o600))
			}
			manifest := func(i int) string {
				return write(t, dir, "version = 1\norder = [\"it\"]\n[defaults]\ntimeout = \"1m\"\npool = 4\n[stage.it]\nmodule = \""+strconv.Itoa(i%2)+".wasm\"\n"+tt.stage)
			}
			b := &loaded{t: t, says: tt.says}
			b.host, err = host.Open(t.Context(), manifest(0), host.Options{
				Dev: true, CacheDir: chaintest.CacheDir(), Log: slog.New(slog.DiscardHandler),
				Trace: chain.Tracer{Step: func(s chain.Step) {
					if s.Cause != 0 {
						b.failures.Add(1)
					}
				}},
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, b.host.Close(context.WithoutCancel(t.Context()))) }()
			reload := func(i int) {
				manifest(i)
				before := b.host.Manifest().Version
				require.NoError(t, b.host.Reload(t.Context()))
				require.NotEqual(t, before, b.host.Manifest().Version)
			}

			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for range 4 {
				callers.Go(func() {
					for ctx.Err() == nil {
						b.turn()
					}
				})
			}
			for i := 1; i <= 10; i++ {
				reload(i)
			}
			before := b.holds()
			for i := 1; i <= reloads; i++ {
				reload(i)
			}
			after := b.holds()
			stop()
			callers.Wait()

			t.Logf("%d turns beside %d reloads: heap %+d KiB, outside it %+d KiB, mappings %+d, of images %+d, goroutines %+d", b.turns.Load(), reloads,
				(after.heap-before.heap)>>10, (after.outside-before.outside)>>10, after.mappings-before.mappings, after.images-before.images, after.goroutines-before.goroutines)
			assert.Zero(t, b.failures.Load(), "no call was dropped")
			assert.Greater(t, b.turns.Load(), int64(reloads)/2, "turns went on")
			assert.Less(t, after.heap, before.heap+2<<20, "bytes of the heap")
			assert.Less(t, after.outside, before.outside+16<<20, "bytes outside the heap")
			assert.LessOrEqual(t, after.mappings, before.mappings+40, "mapped regions")
			assert.LessOrEqual(t, after.images, before.images+4, "maps of images: a pool has one to four instances")
			assert.LessOrEqual(t, after.goroutines, before.goroutines+4)
		})
	}
}
