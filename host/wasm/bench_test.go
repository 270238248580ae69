package wasm

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/internal/fake"
)

// masked is an event with 4 KB of text in which there are cards.
func masked() *abi.Event {
	ev := event("a")
	ev.Hook = abi.AfterModel
	text := strings.Repeat("The card 4111 1111 1111 1111 and the number 12 are in this line, and more words.\n", 50)
	ev.Subject = &fake.Subject{Texts: []abi.Leaf{{Kind: abi.LeafText, Pointer: "/content/parts/0/text", Text: text}}}
	return ev
}

// guestsOf are the guests that are measured.
var guestsOf = map[string]func(testing.TB) *bench{
	"C": func(t testing.TB) *bench { return newBench(t, "mask_c") },
	"Go": func(t testing.TB) *bench {
		b := newBench(t, "continue").set("entities.0", "card")
		b.cfg.Module, b.cfg.Memory = compiled(t, "guests/redact"), 32<<20
		return b
	},
}

// BenchmarkCall is a call on 4 KB of text: with the reset behind the calls,
// with a pool of one so that each call waits for it, and without.
func BenchmarkCall(b *testing.B) {
	for name, guest := range guestsOf {
		for _, tt := range []struct {
			name   string
			pool   int
			shared bool
		}{{"reset behind", 2, false}, {"reset before", 1, false}, {"no reset", 1, true}} {
			b.Run(name+"/"+tt.name, func(b *testing.B) {
				bench := guest(b).pool(tt.pool)
				bench.cfg.Shared = tt.shared
				stage, ev := bench.loads().stage, masked()
				for b.Loop() {
					v, err := stage.Call(b.Context(), ev)
					require.NoError(b, err)
					require.Equal(b, abi.Amend, v.Kind)
				}
			})
		}
	}
}

// BenchmarkReset is the reset alone, after such a call.
func BenchmarkReset(b *testing.B) {
	for name, guest := range guestsOf {
		b.Run(name, func(b *testing.B) {
			stage, ev := guest(b).pool(1).loads().stage, masked()
			in, err := stage.pool.get(b.Context())
			require.NoError(b, err)
			defer func() { stage.pool.put(in) }()
			var took time.Duration
			n := 0
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
				_, err := in.call(ctx, stage.services.NewCall(ctx, &stage.facts, ev))
				cancel()
				require.NoError(b, err)
				begin := time.Now()
				require.Empty(b, in.reset())
				took += time.Since(begin)
				n++
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(n), "reset-ns/op")
			b.ReportMetric(float64(in.held())/4096, "pages")
		})
	}
}

// BenchmarkThousandInstances is the memory of a thousand instances of a Go
// guest that have each served a call.
func BenchmarkThousandInstances(b *testing.B) {
	const n = 1000
	stage, ev := guestsOf["Go"](b).pool(n).loads().stage, masked()
	for b.Loop() {
		before := resident(b)
		var all []instance
		for range n {
			in, err := stage.pool.get(b.Context())
			require.NoError(b, err)
			ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
			_, err = in.call(ctx, stage.services.NewCall(ctx, &stage.facts, ev))
			cancel()
			require.NoError(b, err)
			all = append(all, in)
		}
		for _, in := range all {
			stage.pool.put(in)
		}
		require.Eventually(b, func() bool { return stage.pool.load().bytes > 0 && len(stage.pool.clean) == n }, 10*time.Second, time.Millisecond)
		inUse()
		b.ReportMetric(float64(resident(b)-before)/(1<<20), "MB")
		b.ReportMetric(float64(stage.pool.load().bytes)/(1<<20), "MB-in-guests")
		b.ReportMetric(float64(stage.pool.load().size), "instances")
	}
}

// resident is the proportional share of this process in the machine's memory,
// in bytes.
func resident(t testing.TB) int64 {
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(rollup), "\nPss:")
	require.True(t, found)
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return kb << 10
}
