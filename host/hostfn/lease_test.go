package hostfn_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
	"github.com/hookhost/hookhost/host/internal/fake"
	"github.com/hookhost/hookhost/store"
	inmemory "github.com/hookhost/hookhost/store/memory"
)

// renewals is a store whose renewals cost time, and fail.
type renewals struct {
	store.Store
	perLease time.Duration
	fail     func([]store.Lease) error
	failures int
}

func (r *renewals) Renew(ctx context.Context, leases []store.Lease) ([]bool, error) {
	select {
	case <-time.After(time.Duration(len(leases)) * r.perLease):
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
	if r.fail != nil {
		if err := r.fail(leases); err != nil {
			r.failures++
			return nil, err
		}
	}
	return r.Store.Renew(ctx, leases)
}

// renewing is a process with leases of two expiries, that runs as long as the
// test.
func renewing(t *testing.T, r *renewals, long, short time.Duration) *bench {
	b := newBench(t, "limit:runs", "limit:quick")
	r.Store = inmemory.New(nil)
	b.services.Store = r
	b.plans["runs"] = hostfn.Limit{Plan: "free", Cap: &store.Cap{Max: 1, Expires: long}}
	b.plans["quick"] = hostfn.Limit{Plan: "free", Cap: &store.Cap{Max: 1, Expires: short}}
	ctx, cancel := context.WithCancel(t.Context())
	var over sync.WaitGroup
	over.Go(func() { b.services.Run(ctx) })
	t.Cleanup(func() { cancel(); over.Wait() })
	return b
}

// acquire takes a lease for a run of each user.
func (b *bench) acquire(limit string, users ...string) {
	b.t.Helper()
	for _, u := range users {
		b.run, b.op = fake.NewScope("run-"+u), fake.NewScope("op-"+u)
		b.at(abi.BeforeRun).ev.User = u
		require.Equal(b.t, abi.Admitted, b.admit(b.call(), limit).kind)
	}
}

func (b *bench) live(limit string, users ...string) (n int64) {
	b.t.Helper()
	for _, u := range users {
		held, err := b.services.Store.Held(b.t.Context(), store.Owner{Kind: store.OwnerUser, App: "app", User: u}, limit)
		require.NoError(b.t, err)
		n += held
	}
	return n
}

// logged counts lines of the log, once all is quiet.
func (b *bench) logged(words string) int {
	synctest.Wait()
	return strings.Count(b.log.String(), words)
}

func usersOf(kind string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(kind, i))
	}
	return all
}

func TestLeasesOutliveAnOutageOfMoreThanHalfTheirExpiry(t *testing.T) {
	for _, from := range []time.Duration{100 * time.Millisecond, 9900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			r := &renewals{fail: func([]store.Lease) error {
				if at := time.Since(began); at >= from && at < from+18*time.Second {
					return fmt.Errorf("gone: %w", store.ErrUnavailable)
				}
				return nil
			}}
			b := renewing(t, r, 30*time.Second, time.Second)
			b.acquire("runs", "ada")
			for range 60 {
				time.Sleep(time.Second)
				require.EqualValues(t, 1, b.live("runs", "ada"), time.Since(began))
			}
			assert.Greater(t, r.failures, 5, "tried again")
			assert.Equal(t, 1, b.logged("leases not renewed"), "logged once")
			assert.Equal(t, 1, b.logged("leases are renewed again"))
			assert.Empty(t, b.measured("hookhost.lease.lost"))
		})
	}
}

func TestLeasesOfAShortExpiryBesideThousandsOfLongOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long, short := usersOf("long", 5000), usersOf("short", 20)
		r := &renewals{perLease: 20 * time.Microsecond} // all of them together take longer than a short one may
		b := renewing(t, r, 12*time.Second, 300*time.Millisecond)
		b.acquire("runs", long...)
		b.acquire("quick", short...)
		time.Sleep(40 * time.Second)
		assert.EqualValues(t, 5000, b.live("runs", long...))
		assert.EqualValues(t, 20, b.live("quick", short...))
		assert.Empty(t, b.measured("hookhost.lease.lost"))
	})
}

func TestALeaseWhoseKeyIsInTheWayHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &renewals{fail: func(leases []store.Lease) error {
			for _, l := range leases {
				if l.Owner.User == "bad" {
					return fmt.Errorf("%w: leases: %w", store.ErrUnavailable, store.ErrInTheWay)
				}
			}
			return nil
		}}
		b := renewing(t, r, 30*time.Second, time.Second)
		good := usersOf("good", 200)
		b.acquire("runs", good...)
		b.acquire("runs", "bad")
		time.Sleep(2 * time.Minute)
		assert.EqualValues(t, 200, b.live("runs", good...))
		assert.Zero(t, b.live("runs", "bad"))
		assert.Equal(t, 1, b.logged("leases not renewed"), "logged once")
		assert.Less(t, r.failures, 400, "found by halves when the others are due, and tried alone in between")
	})
}

func TestWhatLapsedInAnOutageIsCountedWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := &renewals{fail: func([]store.Lease) error {
			if time.Since(began) < time.Minute {
				return store.ErrUnavailable
			}
			return nil
		}}
		b := renewing(t, r, 30*time.Second, time.Second)
		b.acquire("runs", usersOf("u", 7)...)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, map[string]float64{"reason=renewal": 7}, b.measured("hookhost.lease.lost"))
		assert.Equal(t, 7, b.logged("lease lost"))
		assert.Zero(t, b.services.Leases.Held())
	})
}

func TestANewCapInMidRunIsTheSameLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := renewing(t, &renewals{}, 30*time.Second, time.Second)
		b.acquire("runs", "ada")
		first := b.take(b.call(), "runs", 1)
		b.plans["runs"] = hostfn.Limit{Plan: "pro", Cap: &store.Cap{Max: 2, Expires: 2 * time.Second}}
		second := b.take(b.call(), "runs", 1)
		assert.Equal(t, 1, b.services.Leases.Held())
		time.Sleep(10 * time.Second)
		assert.EqualValues(t, 1, b.live("runs", "ada"), "renewed by its new expiry")
		require.EqualValues(t, abi.OK, b.call().LimitRelease(second.id))
		b.drain()
		assert.EqualValues(t, 1, b.live("runs", "ada"), "the run still has the first")
		require.EqualValues(t, abi.OK, b.call().LimitRelease(first.id))
		b.run.End(abi.Ending{Reason: abi.ReasonDone})
		b.drain()
		assert.Zero(t, b.live("runs", "ada"))
		assert.Empty(t, b.measured("hookhost.lease.lost"))
	})
}
