package host_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/host/demo"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

// left is what a host left on the store.
type left struct {
	turns, tokens, runs, processes int64
	dropped                        map[string]int64
}

// closedInMidRun closes a host whose run waits for its model, with the context
// of the run, which is cancelled before, or with one that is not.
func closedInMidRun(t *testing.T, namespace string, withTheRuns bool) left {
	b := oneServer()(t)
	w, m := openOnRedis(t, b.url, namespace, "closed")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan struct{})
	w.model.Replies = []demo.Reply{{Text: "late", Delay: demo.Duration(time.Hour)}}
	w.model.Sleep = func(ctx context.Context, _ time.Duration) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	}
	var run sync.WaitGroup
	run.Go(func() { demo.Run(ctx, w.runner, demo.Turn{User: "ada", Text: "hi"}) })
	<-asked
	use := context.WithoutCancel(ctx)
	if withTheRuns {
		use = ctx
	}
	cancel()

	began := time.Now()
	require.NoError(t, w.host.Close(use))
	assert.Less(t, time.Since(began), host.CloseTime)
	run.Wait()

	l, err := host.OpenLimits(context.WithoutCancel(ctx), w.path, host.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close(context.WithoutCancel(ctx))) }()
	shown, err := l.Show(context.WithoutCancel(ctx), "app", "ada")
	require.NoError(t, err)
	state := left{dropped: m.read("hookhost.outbox.dropped")}
	state.processes, _ = b.server.Do(t, "ZCARD", namespace+":{g}:l:"+host.ProcessesLimit).(int64)
	for _, one := range shown.Limits {
		switch one.Name {
		case "turn":
			state.turns = one.Balance
		case "tokens":
			state.tokens = one.Balance
		case "runs":
			state.runs = one.Held
		}
	}
	return state
}

// A program that a signal ends closes with the signal's context, which is over:
// nothing of what its runs left to be written is lost by that.
func TestCloseWithTheContextThatEndedTheRunsWritesAll(t *testing.T) {
	redistest.Require(t)
	want := closedInMidRun(t, "live", false)
	assert.Equal(t, left{turns: burst - 1, tokens: want.tokens, dropped: map[string]int64{}}, want, "no lease, no process")
	assert.Equal(t, want, closedInMidRun(t, "over", true))
}

// Nothing answers any more: what is over gives it CloseTime and no more.
func TestCloseWithAContextThatIsOverEnds(t *testing.T) {
	redistest.Require(t)
	b := oneServer()(t)
	w, m := openOnRedis(t, b.url, "paused", "closed")
	went, _ := w.turn()
	require.Equal(t, granted, went)
	b.server.Pause(t)
	defer b.server.Resume(t)
	w.turn()
	over, cancel := context.WithCancel(t.Context())
	cancel()

	began := time.Now()
	_ = w.host.Close(over)
	assert.Less(t, time.Since(began), host.CloseTime+time.Second)
	assert.NotEmpty(t, m.read("hookhost.outbox.dropped"), "what could not be written is counted")
}
