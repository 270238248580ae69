package learn_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host/hostfn/learn"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// averages is a store that can lose its answers.
type averages struct {
	store.Averages
	mu   sync.Mutex
	lose bool
	ids  []string
}

func newAverages() *averages { return &averages{Averages: memory.New(nil)} }

func (a *averages) Learn(ctx context.Context, id string, samples []store.Sample) ([]int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(a.ids, id)
	means, err := a.Averages.Learn(ctx, id, samples)
	if a.lose {
		return nil, fmt.Errorf("%w: the answer was lost", store.ErrUnavailable)
	}
	return means, err
}

func (a *averages) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ids)
}

func newLearner(s store.Averages) *learn.Learner {
	return learn.New(s, time.Second, slog.New(slog.DiscardHandler))
}

var writer = learn.Of{App: "app", Agent: "writer", Model: "large"}

// knows checks an average; 0 is none.
func knows(t *testing.T, l *learn.Learner, of learn.Of, want int64) {
	t.Helper()
	mean, known := l.Mean(of)
	assert.Equal(t, want, mean)
	assert.Equal(t, want > 0, known)
}

func TestWhatIsLearnedIsKnownAfterAnExchange(t *testing.T) {
	l := newLearner(newAverages())
	knows(t, l, writer, 0)
	l.Add(writer, 100)
	l.Add(writer, 200)
	knows(t, l, writer, 0)
	require.NoError(t, l.Exchange(t.Context()))
	knows(t, l, writer, 150)
	knows(t, l, learn.Of{App: "app", Agent: "reader", Model: "large"}, 0)
}

func TestAllProcessesComeToKnowTheSame(t *testing.T) {
	shared := newAverages()
	one, two := newLearner(shared), newLearner(shared)
	one.Add(writer, 100)
	knows(t, two, writer, 0) // and from now on it is interested
	require.NoError(t, one.Exchange(t.Context()))
	require.NoError(t, two.Exchange(t.Context()))
	knows(t, two, writer, 100)
	two.Add(writer, 300)
	require.NoError(t, two.Exchange(t.Context()))
	require.NoError(t, one.Exchange(t.Context()))
	knows(t, one, writer, 200)
}

func TestALostAnswerIsLearnedOnce(t *testing.T) {
	shared := newAverages()
	l := newLearner(shared)
	l.Add(writer, 100)
	shared.lose = true
	require.ErrorIs(t, l.Exchange(t.Context()), store.ErrUnavailable)
	l.Add(writer, 400)
	require.ErrorIs(t, l.Exchange(t.Context()), store.ErrUnavailable)
	shared.lose = false
	require.NoError(t, l.Exchange(t.Context()))
	knows(t, l, writer, 250)
	assert.Equal(t, shared.ids[0], shared.ids[1])
	assert.Equal(t, shared.ids[0], shared.ids[2])
	assert.NotEqual(t, shared.ids[0], shared.ids[3])
}

// obstructed is a store that fails for agents and apps of that name.
type obstructed struct {
	store.Averages
	err error
}

func (o obstructed) Learn(ctx context.Context, id string, samples []store.Sample) ([]int64, error) {
	for _, s := range samples {
		if s.Agent == "broken" || s.App == "broken" {
			return nil, o.err
		}
	}
	return o.Averages.Learn(ctx, id, samples)
}

func TestAKeyInTheWayOfOneAverageIsInNobodyElses(t *testing.T) {
	var log bytes.Buffer
	l := learn.New(obstructed{memory.New(nil), fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrInTheWay)}, time.Second, slog.New(slog.NewTextHandler(&log, nil)))
	l.Add(learn.Of{App: "app", Agent: "broken"}, 1)
	var good []learn.Of
	for i := range 20 {
		of := learn.Of{App: "app", Agent: fmt.Sprint("agent-", i)}
		good = append(good, of)
		l.Add(of, 7)
	}
	require.ErrorIs(t, l.Exchange(t.Context()), store.ErrInTheWay)
	for _, of := range good {
		knows(t, l, of, 7)
	}
	assert.Equal(t, 1, strings.Count(log.String(), "samples are given up"))
	assert.Contains(t, log.String(), "agent=broken model=\"\" samples=1 calls=1")
	l.Add(writer, 9)
	require.Error(t, l.Exchange(t.Context()))
	knows(t, l, writer, 9)
	assert.Equal(t, 1, strings.Count(log.String(), "samples are given up"), "there was nothing more to give up")
}

func TestAnAppThatIsStuckHoldsUpNoOtherAndIsGivenUp(t *testing.T) {
	var log bytes.Buffer
	l := learn.New(obstructed{memory.New(nil), store.ErrUnavailable}, time.Second, slog.New(slog.NewTextHandler(&log, nil)))
	l.Add(learn.Of{App: "broken"}, 1)
	for i := range 40 {
		l.Add(learn.Of{App: fmt.Sprint("app-", i)}, 7)
		require.ErrorIs(t, l.Exchange(t.Context()), store.ErrUnavailable)
		knows(t, l, learn.Of{App: fmt.Sprint("app-", i)}, 7)
	}
	assert.Equal(t, 1, strings.Count(log.String(), "samples are given up"))
}

func TestWhileTheStoreIsAwayNothingIsGivenUp(t *testing.T) {
	shared := newAverages()
	l := newLearner(shared)
	l.Add(writer, 100)
	shared.lose = true
	for range 100 {
		require.ErrorIs(t, l.Exchange(t.Context()), store.ErrUnavailable)
	}
	l.Add(writer, 200)
	shared.lose = false
	require.NoError(t, l.Exchange(t.Context()))
	knows(t, l, writer, 150)
}

func TestNothingToAskIsNotAsked(t *testing.T) {
	shared := newAverages()
	require.NoError(t, newLearner(shared).Exchange(t.Context()))
	assert.Zero(t, shared.asked())
}

func TestAgentsAreBounded(t *testing.T) {
	l := newLearner(newAverages())
	for i := range 3000 {
		l.Add(learn.Of{App: "app", Agent: fmt.Sprint(i)}, 10)
	}
	require.NoError(t, l.Exchange(t.Context()))
	knows(t, l, learn.Of{App: "app", Agent: "999"}, 10)
	knows(t, l, learn.Of{App: "app", Agent: "1000"}, 0)
}

func TestRunExchangesAsItGoesAndAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newAverages()
		l := newLearner(shared)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); l.Run(ctx) }()
		l.Add(writer, 100)
		time.Sleep(learn.Every + time.Millisecond)
		knows(t, l, writer, 100)
		l.Add(writer, 300)
		cancel()
		<-over
		knows(t, l, writer, 200)
		assert.Equal(t, 2, shared.asked())
	})
}
