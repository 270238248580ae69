package meter

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSpinningGuestsDoNotStarve: guests that never end neither hold up the
// collector nor keep other goroutines from running, on one processor or all.
// Compiled code is not preempted; a tick is where it lets others in.
func TestSpinningGuestsDoNotStarve(t *testing.T) {
	for name, processors := range map[string]int{"one processor": 1, "all processors": runtime.NumCPU()} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			const guests, collections = 8, 20
			stop := time.Now().Add(20 * time.Second) // a hang fails, and ends
			var over atomic.Bool
			var wait sync.WaitGroup
			for range guests {
				m := started(t, fixture(t, "shapes"), endless())
				enough(m)
				b := endless()
				b.slice = 100_000
				b.asked = func() bool { return over.Load() || time.Now().After(stop) }
				wait.Go(func() {
					_, err := m.ExportedFunction("fuel_loop").Call(withBudget(t.Context(), b), 1<<32-1)
					for err == nil { // an i32 of rounds is not for ever
						_, err = m.ExportedFunction("fuel_loop").Call(withBudget(t.Context(), b), 1<<32-1)
					}
					assert.ErrorIs(t, err, errOver)
				})
			}
			var kept [][]byte
			begin := time.Now()
			for range collections { // a host that allocates, and collects
				for range 100 {
					kept = append(kept, make([]byte, 10_000))
				}
				kept = kept[len(kept)/2:]
				runtime.GC()
			}
			took := time.Since(begin)
			over.Store(true)
			wait.Wait()
			require.Less(t, took, 15*time.Second)
			t.Logf("%d collections beside %d spinning guests in %v", collections, guests, took)
		})
	}
}
