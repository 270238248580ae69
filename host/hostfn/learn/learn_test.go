package learn_test

import (
	"context"
	"fmt"
	"log/slog"
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

var writer = learn.Of{App: "app", Agent: "writer", Model: "large"}

// knows checks an average; 0 is none.
func knows(t *testing.T, l *learn.Learner, of learn.Of, want int64) {
	t.Helper()
	mean, known := l.Mean(of)
	assert.Equal(t, want, mean)
	assert.Equal(t, want > 0, known)
}

func TestWhatIsLearnedIsKnownAfterAnExchange(t *testing.T) {
	l := learn.New(newAverages())
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
	one, two := learn.New(shared), learn.New(shared)
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
	l := learn.New(shared)
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

func TestNothingToAskIsNotAsked(t *testing.T) {
	shared := newAverages()
	require.NoError(t, learn.New(shared).Exchange(t.Context()))
	assert.Zero(t, shared.asked())
}

func TestAgentsAreBounded(t *testing.T) {
	l := learn.New(newAverages())
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
		l := learn.New(shared)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); l.Run(ctx, time.Second, slog.New(slog.DiscardHandler)) }()
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
