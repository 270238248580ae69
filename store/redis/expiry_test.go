package redis

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func lifeOf(t require.TestingT, server *redistest.Server, key string) time.Duration {
	life, err := server.Client.PTTL(ctx, key).Result()
	require.NoError(t, err)
	return life
}

func TestSettleCase016ADebtOutlivesItsKeysFirstExpiry(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	b := store.Bucket{Units: 1, Per: time.Millisecond, Burst: 60000}
	_, err := s.Admit(ctx, store.Admission{ID: "dear", Owner: ann, Items: []store.Item{
		{Limit: "tokens", Take: &store.Take{Bucket: b, Cost: 6000, MaxWait: 2 * time.Second, Reserve: time.Hour}},
	}})
	require.NoError(t, err)
	_, err = s.Settle(ctx, store.Reservation{ID: "dear", Owner: ann, Limit: "tokens", Bucket: b}, 186000)
	require.NoError(t, err)
	assert.Greater(t, lifeOf(t, server, s.owned(ann).buckets()), 186*time.Second)
}

// Whatever is written: Redis keeps a bucket at least until it is full, and
// everything has an end.
func TestSettleABucketIsKeptUntilItIsFull(t *testing.T) {
	server := redistest.Single(t)
	clock := newServerClock(t, server)
	s := onClock(t, server, "life")
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	rapid.Check(t, func(t *rapid.T) {
		o := store.Owner{Kind: store.OwnerUser, App: "shop", User: newID()}
		b := store.Bucket{Units: rapid.Int64Range(1, 1000).Draw(t, "units"), Per: time.Duration(rapid.Int64Range(1, 100_000).Draw(t, "per")) * time.Millisecond, Burst: rapid.Int64Range(1, 1e6).Draw(t, "burst")}
		keeps := func(balance int64) {
			key := s.owned(o).buckets()
			if balance == b.Burst {
				require.EqualValues(t, -2, server.Client.PTTL(ctx, key).Val(), "full ones are not kept")
				return
			}
			full := (store.Level{Units: balance, Rest: b.Rate().P - 1, Per: b.Rate().P, Stamp: 0}).Wait(b, b.Burst)
			require.GreaterOrEqual(t, lifeOf(t, server, key), store.Millis(full))
		}
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			clock.Advance(time.Duration(rapid.Int64Range(-1000, 100_000).Draw(t, "clock")) * time.Millisecond)
			id := newID()
			d, err := s.Admit(ctx, store.Admission{ID: id, Owner: o, Items: []store.Item{{Limit: "tokens", Take: &store.Take{
				Bucket: b, Cost: rapid.Int64Range(1, b.Burst).Draw(t, "cost"), MaxWait: math.MaxInt64, Reserve: time.Hour,
			}}}})
			require.NoError(t, err)
			keeps(d.Balance)
			balance, err := s.Settle(ctx, store.Reservation{ID: id, Owner: o, Limit: "tokens", Bucket: b}, rapid.Int64Range(0, 1e7).Draw(t, "actual"))
			require.NoError(t, err)
			keeps(balance)
		}
	})
}

// Redis keeps a key at least as long as what the README says of it: the
// scripts go by what the key holds, but only while it is there.
func TestSettleAndClaimKeysAreKeptAsLongAsWhatTheyHold(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	const day = 24 * time.Hour
	of := s.owned(ann)
	kept := func(want time.Duration, key, after string) {
		t.Helper()
		assert.Greater(t, lifeOf(t, server, key), want-time.Minute, "after %s", after)
		assert.LessOrEqual(t, lifeOf(t, server, key), want+2*time.Minute, "after %s", after)
	}

	reserve := func(limit string, d time.Duration) store.Item {
		return store.Item{Limit: limit, Take: &store.Take{Bucket: hourly, Cost: 10, Reserve: d}}
	}
	_, err := s.Admit(ctx, store.Admission{ID: "call", Owner: ann, Items: []store.Item{reserve("tokens", 2*time.Hour), reserve("images", 3*time.Hour)}})
	require.NoError(t, err)
	kept(3*time.Hour, of.operation("call"), "an admission")
	settle := func(limit string) {
		_, err := s.Settle(ctx, store.Reservation{ID: "call", Owner: ann, Limit: limit, Bucket: hourly}, 1)
		require.NoError(t, err)
	}
	settle("tokens")
	kept(3*time.Hour, of.operation("call"), "settling one of two reservations")
	settle("images")
	kept(store.Remembered, of.operation("call"), "settling both")

	key := store.ClaimKey{Owner: ann, Name: "turns", Key: "message"}
	claim, err := s.Claim(ctx, key, "worker", 2*time.Hour)
	require.NoError(t, err)
	kept(2*time.Hour, of.claim(key), "a claim")
	kept(31*day, of.token(), "a claim")
	require.NoError(t, s.RenewClaim(ctx, key, claim.Token, 3*time.Hour))
	kept(3*time.Hour, of.claim(key), "renewing it")
	require.NoError(t, s.EndClaim(ctx, key, claim.Token, []byte("done"), 7*day))
	kept(7*day, of.claim(key), "its result")

	color := store.ValueKey{Owner: ann, Name: "prefs", Key: "color"}
	require.NoError(t, s.PutValue(ctx, color, []byte("red"), 5*time.Hour))
	kept(5*time.Hour, of.value(color), "a value")
	_, err = s.AddCounter(ctx, ann, "images", "op", 1)
	require.NoError(t, err)
	kept(CounterLife, of.counter("images"), "an addition")
	kept(store.Remembered, of.addition("images", "op"), "an addition")

	_, err = s.Record(ctx, store.Record{ID: "op", Time: time.Now(), App: ann.App, User: ann.User})
	require.NoError(t, err)
	kept(RecordLife, of.records(), "a record")
	kept(RecordLife, of.recordOrder(), "a record")
	kept(store.ActivityKept+day, of.activity(), "a record")
	_, err = s.Learn(ctx, "flush", []store.Sample{{App: "shop", Agent: "desk", Model: "m", Calls: 1, Units: 7}})
	require.NoError(t, err)
	kept(store.AverageLife, s.owned(store.Owner{Kind: store.OwnerApp, App: "shop"}).average("desk", "m"), "a sample")
}

func TestSettleEverythingOfAnOwnerHasAnEnd(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	succeed(t, s, ann)
	for _, key := range server.Do(t, "KEYS", "*").([]any) {
		switch key {
		case "test:{format}", "test:{overrides}:users", "test:{overrides}:log", "test:{overrides}:changes":
			assert.EqualValues(t, -1, lifeOf(t, server, key.(string)), "%s ends when it is taken back", key)
		default:
			assert.Positive(t, lifeOf(t, server, key.(string)), key)
		}
	}
}

// The lease set lives as long as its last lease, whatever came after that.
func TestLeaseCase013AShortLeaseEndsNoLongerOne(t *testing.T) {
	server := redistest.Single(t)
	s := opened(t, server.URL())
	for member, expires := range map[string]time.Duration{"run-1": time.Hour, "run-2": time.Second} {
		_, err := s.Admit(ctx, store.Admission{ID: newID(), Owner: ann, Items: []store.Item{
			{Limit: "runs", Acquire: &store.Acquire{Cap: store.Cap{Max: 2, Expires: expires}, Member: member}},
		}})
		require.NoError(t, err)
	}
	key := s.owned(ann).leases("runs")
	assert.Greater(t, lifeOf(t, server, key), time.Hour-time.Minute)
	_, err := s.Renew(ctx, []store.Lease{{Owner: ann, Limit: "runs", Member: "run-2", Cap: store.Cap{Max: 2, Expires: time.Second}}})
	require.NoError(t, err)
	assert.Greater(t, lifeOf(t, server, key), time.Hour-time.Minute)
}

// A process that dies with a reservation leaves the charge as it is.
func TestSettleAReservationOfADeadProcessStaysCharged(t *testing.T) {
	server := redistest.Single(t)
	dying, other := opened(t, server.URL()), opened(t, server.URL())
	const reserve = 300 * time.Millisecond
	a := turn(newID(), ann)
	a.Items[1].Take.Reserve = reserve
	_, err := dying.Admit(ctx, a)
	require.NoError(t, err)
	time.Sleep(reserve)
	_, err = other.Settle(ctx, store.Reservation{ID: a.ID, Owner: ann, Limit: "tokens", Bucket: hourly}, 0)
	require.ErrorIs(t, err, store.ErrUnknownID)
	assert.EqualValues(t, 90, balance(t, other, ann))
}
