package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// living starts a process. The function kills it: it says nothing more.
func living(t *testing.T, s store.Store) (p host.Process, kill func()) {
	t.Helper()
	p = host.NewProcess(s, 7, 30*time.Second)
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	go p.Run(ctx)
	synctest.Wait()
	return p, kill
}

func TestLiveProcessesCountEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := memory.New(nil)
		assert.EqualValues(t, 7, host.NewProcess(shared, 7, time.Minute).Count(), "before the store was asked")
		first, _ := living(t, shared)
		assert.EqualValues(t, 1, first.Count())
		second, kill := living(t, shared)
		third, killThird := living(t, shared)
		assert.EqualValues(t, 3, third.Count())
		time.Sleep(10*time.Second + time.Millisecond)
		assert.EqualValues(t, 3, first.Count(), "within ten seconds")

		kill()
		time.Sleep(19 * time.Second)
		assert.EqualValues(t, 3, first.Count(), "it may only be slow")
		time.Sleep(22 * time.Second)
		assert.EqualValues(t, 2, first.Count(), "it was killed")
		assert.EqualValues(t, 3, second.Count(), "the dead know nothing")

		killThird()
		require.NoError(t, third.Leave(t.Context()))
		time.Sleep(10*time.Second + time.Millisecond)
		assert.EqualValues(t, 1, first.Count(), "it said that it is over")
	})
}

// gone is a store that can be away as a whole.
type gone struct {
	store.Store
	away atomic.Bool
}

func (g *gone) Renew(ctx context.Context, leases []store.Lease) ([]bool, error) {
	if g.away.Load() {
		return nil, store.ErrUnavailable
	}
	return g.Store.Renew(ctx, leases)
}

func TestTheCountStaysWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &gone{Store: memory.New(nil)}
		first, _ := living(t, shared)
		time.Sleep(time.Second)
		second, _ := living(t, shared)
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, first.Count())

		shared.away.Store(true)
		time.Sleep(10 * time.Minute)
		assert.EqualValues(t, 2, first.Count())

		shared.away.Store(false)
		for range 30 {
			time.Sleep(time.Second)
			assert.EqualValues(t, 2, first.Count(), "also while the other one is not back yet")
			assert.EqualValues(t, 2, second.Count())
		}
	})
}

func TestAHostIsCountedWhileItIsOpen(t *testing.T) {
	shared := memory.New(nil)
	watch := func() int64 {
		n, err := shared.Held(t.Context(), store.Owner{Kind: store.OwnerGlobal}, host.ProcessesLimit)
		require.NoError(t, err)
		return n
	}
	first := onPlans(t, manyPlans, host.Options{Store: kept{shared}})
	second := onPlans(t, manyPlans, host.Options{Store: kept{shared}})
	require.Eventually(t, func() bool { return watch() == 2 }, 5*time.Second, time.Millisecond)

	require.NoError(t, second.host.Close(t.Context()))
	assert.EqualValues(t, 1, watch())
	require.NoError(t, first.host.Close(t.Context()))
	assert.EqualValues(t, 0, watch())
}

// kept is a store that others use too: a host does not close it.
type kept struct{ store.Store }

func (kept) Close(context.Context) error { return nil }
