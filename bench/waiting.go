package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// The bucket is empty at first, and deep in debt then: a call waits for half an
// hour.
const slow = `
version = "1"
default = "free"
[plan.free]
turn = { rate = "1000000/s", burst = 1000000 }
tokens = { rate = "100/s", burst = 100, estimate = 1, max_wait = "1h" }
runs = { max = 1000000, expires = "30s" }
`

const longWait = 30 * time.Minute

// measureWaiting compares the memory of runs that wait for their tokens with
// that of runs in which a native plugin waits on a timer.
func measureWaiting(l *lab, s settings) []figure {
	clock := &waits{}
	h := openHost(l, s, redistest.Single(l).URL(), slow, clock)
	owe(l, h)
	native, err := plugin.New(plugin.Config{
		Name: "native",
		BeforeModelCallback: func(ctx agent.Context, _ *model.LLMRequest) (*model.LLMResponse, error) {
			return nil, clock.Sleep(ctx, longWait)
		},
	})
	require.NoError(l, err)

	var all, stacks rounds
	for i := range 1 + min(s.rounds, 3) { // memory varies little
		peer := waiting{lab: l, clock: clock, plugin: native}.measure(s.runs, func() {})
		ours := waiting{lab: l, clock: clock, plugin: h.Plugin()}.measure(s.runs, func() { answersOthers(l, h) })
		require.NoError(l, h.Drain(l.ctx))
		if i > 0 { // the first one fills pools
			all.add(ours.all(), peer.all())
			stacks.add(ours.stacks, peer.stacks)
		}
	}
	what, peer := fmt.Sprintf("waiting: memory of each of %d runs", s.runs), "native plugin"
	more := func(ours, peer float64) float64 { return ours - peer }
	return []figure{
		all.judge(what, "bytes", peer, "ours - peer", more).atMost(8000),
		stacks.judge(what+", stacks of it", "bytes", peer, "ours - peer", more),
	}
}

// owe takes what the waiting user has and would get for a long time.
func owe(l *lab, h *host.Host) {
	limit, defined := h.Limit(l.ctx, app, waiter, "tokens")
	require.True(l, defined)
	d, err := h.Store().Admit(l.ctx, store.Admission{
		ID: "debt", Owner: store.Owner{Kind: store.OwnerUser, App: app, User: waiter},
		Items: []store.Item{{Limit: "tokens", Take: &store.Take{
			Bucket: *limit.Bucket, Cost: int64(longWait/time.Second) * 100, MaxWait: time.Hour,
		}}},
	})
	require.NoError(l, err)
	require.Equal(l, store.Later, d.Kind)
}

// answersOthers checks that the one instance is nobody's who waits.
func answersOthers(l *lab, h *host.Host) {
	out := demo.Run(l.ctx, newRunner(l, h.Plugin()), demo.Turn{User: "other", Text: "Hi"})
	require.NoError(l, out.Err())
	require.Equal(l, []string{"Hello."}, out.Texts(), "a turn while others wait")
}

const waiter = "waiter"

// waits is the real clock, and knows how many wait on it for long.
type waits struct {
	chain.WallClock
	now atomic.Int64
}

func (w *waits) Sleep(ctx context.Context, d time.Duration) error {
	if d > longWait/2 {
		w.now.Add(1)
		defer w.now.Add(-1)
	}
	return w.WallClock.Sleep(ctx, d)
}

// waiting is runs of one user, each in a session of its own.
type waiting struct {
	*lab
	clock  *waits
	plugin *plugin.Plugin
}

// measure gives the bytes of a run that waits, and ends all of them.
func (w waiting) measure(n int, meanwhile func()) memory {
	r := newRunner(w.lab, w.plugin)
	before := live()
	ctx, cancel := context.WithCancel(w.ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range n {
		all.Go(func() { w.wait(ctx, r, i) })
	}
	for end := time.Now().Add(5 * time.Minute); w.clock.now.Load() < int64(n); time.Sleep(10 * time.Millisecond) {
		require.True(w, time.Now().Before(end), "%d of %d runs wait", w.clock.now.Load(), n)
	}
	used := live().since(before, n)
	meanwhile()
	require.EqualValues(w, n, w.clock.now.Load(), "runs that wait still")
	return used
}

func (w waiting) wait(ctx context.Context, r *runner.Runner, i int) {
	_ = demo.Run(ctx, r, demo.Turn{User: waiter, Session: fmt.Sprint(i), Text: "Hi"}) // ends with ctx
}

// memory is bytes.
type memory struct{ heap, stacks float64 }

func (m memory) all() float64 { return m.heap + m.stacks }

// since is what each of n took.
func (m memory) since(before memory, n int) memory {
	return memory{(m.heap - before.heap) / float64(n), (m.stacks - before.stacks) / float64(n)}
}

// live is what is in use. A collection halves a stack at most once, so there
// are as many as it takes.
func live() memory {
	var m runtime.MemStats
	for stacks := ^uint64(0); ; stacks = m.StackInuse {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if m.StackInuse >= stacks {
			return memory{float64(m.HeapAlloc), float64(m.StackInuse)}
		}
	}
}
