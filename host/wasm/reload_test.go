package wasm

import (
	"bytes"
	"context"
	"os"
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

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/golden"
	"github.com/hookhost/hookhost/host/internal/fake"
)

// variants are modules of other bytes that do the same: each is compiled, kept
// and freed by itself.
func variants(module []byte) [2][]byte {
	const custom = 0
	return [2][]byte{module, slices.Concat(module, []byte{custom, 2, 1, 'v'})}
}

// served is the stage that calls go to, while others take its place.
type served struct {
	mu    sync.Mutex
	now   *generation
	quiet sync.RWMutex // held for writing when no call may be going on
}

type generation struct {
	stage *Stage
	calls sync.WaitGroup
}

func (s *served) call(ctx context.Context, ev *abi.Event) (abi.Verdict, error) {
	s.quiet.RLock()
	defer s.quiet.RUnlock()
	s.mu.Lock()
	g := s.now
	g.calls.Add(1)
	s.mu.Unlock()
	defer g.calls.Done()
	return g.stage.Call(ctx, ev)
}

// replace puts a stage in place and closes the one before once its calls are
// over.
func (s *served) replace(next *Stage) error {
	s.mu.Lock()
	old := s.now
	s.now = &generation{stage: next}
	s.mu.Unlock()
	if old == nil {
		return nil
	}
	old.calls.Wait()
	return old.stage.Close(context.Background())
}

// usage is what a process holds.
type usage struct {
	heap    int64 // bytes that live
	outside int64 // bytes resident that are not the heap's: guests and their code

	mappings, images, goroutines int
}

// inQuiet measures when no call goes on.
func (s *served) inQuiet(t *testing.T) usage {
	t.Helper()
	s.quiet.Lock()
	defer s.quiet.Unlock()
	for range 3 {
		debug.FreeOSMemory() // also runs finalizers, which free code
		time.Sleep(20 * time.Millisecond)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	u := usage{heap: int64(stats.HeapAlloc), goroutines: runtime.NumGoroutine()}
	if runtime.GOOS == "linux" {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		u.mappings, u.images = bytes.Count(maps, []byte("\n")), bytes.Count(maps, []byte(imageMap))
		statm, err := os.ReadFile("/proc/self/statm")
		require.NoError(t, err)
		pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
		require.NoError(t, err)
		u.outside = pages*int64(os.Getpagesize()) - int64(stats.HeapSys-stats.HeapReleased)
	}
	return u
}

func (u usage) notAbove(t *testing.T, before usage) {
	t.Helper()
	t.Logf("heap %+d KiB, outside it %+d KiB, mappings %+d, of images %+d, goroutines %+d",
		(u.heap-before.heap)>>10, (u.outside-before.outside)>>10, u.mappings-before.mappings, u.images-before.images, u.goroutines-before.goroutines)
	assert.Less(t, u.heap, before.heap+2<<20, "bytes of the heap")
	assert.Less(t, u.outside, before.outside+16<<20, "bytes outside the heap")
	assert.LessOrEqual(t, u.mappings, before.mappings+40, "mapped regions")
	assert.LessOrEqual(t, u.images, before.images+4, "maps of images: a pool has one to four instances")
	assert.LessOrEqual(t, u.goroutines, before.goroutines+1)
}

// TestReloadDropsNoCallAndKeepsNothing replaces a stage over and over while
// it is called all the time.
func TestReloadDropsNoCallAndKeepsNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		module  func(t *testing.T) []byte
		reloads int
	}{
		{"a small guest", func(t *testing.T) []byte { return fixture(t, "ready") }, 1000},
		{"a Go guest", compiledGolden, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reloads := tt.reloads
			if testing.Short() {
				reloads /= 10
			}
			b := newBench(t, "ready").granted(golden.Grants()...)
			b.cfg.Memory, b.cfg.Timeout, b.cfg.Pool = 32<<20, time.Minute, 4
			modules := variants(tt.module(t))
			var at served
			load := func(i int) {
				b.cfg.Module = modules[i%2]
				next, err := b.runtime.Load(t.Context(), b.cfg, b.services)
				require.NoError(t, err)
				require.NoError(t, at.replace(next))
			}
			load(0)

			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			var calls atomic.Int64
			for range 4 {
				callers.Go(func() {
					for ctx.Err() == nil {
						v, err := at.call(t.Context(), asked())
						if !assert.NoError(t, err) {
							return
						}
						assert.Equal(t, "ready", v.Answer.Text)
						calls.Add(1)
					}
				})
			}
			for i := range 10 {
				load(i)
			}
			before := at.inQuiet(t)
			for i := range reloads {
				load(i)
			}
			after := at.inQuiet(t)
			stop()
			callers.Wait()

			after.notAbove(t, before)
			assert.Greater(t, calls.Load(), int64(reloads), "the calls that went on")
			require.NoError(t, at.now.stage.Close(t.Context()))
			assert.Zero(t, b.runtime.cache.InUse())
		})
	}
}

// asked is a before_model of which both guests say that they are ready: the
// golden one because its script tells it to.
func asked() *abi.Event {
	ev := event("a")
	ev.Subject = &fake.Subject{Texts: []abi.Leaf{{Kind: abi.LeafText, Pointer: "/script", Text: "answer|ready"}}}
	return ev
}
