package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/storetest"
)

var ctx = context.Background()

// entries counts what a store holds of each kind that expires.
func (s *Store) entries() map[string]int {
	return map[string]int{
		"decisions": s.decisions.len(), "buckets": s.buckets.len(), "reservations": s.reservations.len(), "leases": s.leases.len(),
		"claims": s.claims.len(), "values": s.values.len(), "counters": s.counters.len(), "additions": s.additions.len(),
	}
}

func TestWhatExpiredIsSweptByTheCallsThatFollow(t *testing.T) {
	clock := storetest.NewClock()
	s := New(clock)
	const users = 1000
	for i := range users {
		o := store.Owner{Kind: store.OwnerUser, App: "shop", User: fmt.Sprint(i)}
		_, err := s.Admit(ctx, store.Admission{ID: "a", Owner: o, Items: []store.Item{
			{Limit: "turn", Take: &store.Take{Bucket: store.Bucket{Units: 1, Per: time.Second, Burst: 5}, Cost: 1, Reserve: time.Minute}},
			{Limit: "runs", Acquire: &store.Acquire{Cap: store.Cap{Max: 1, Expires: time.Minute}, Member: "run"}},
		}})
		require.NoError(t, err)
		_, err = s.Claim(ctx, store.ClaimKey{Owner: o, Key: "k"}, "holder", time.Minute)
		require.NoError(t, err)
		require.NoError(t, s.PutValue(ctx, store.ValueKey{Owner: o, Key: "k"}, []byte("v"), time.Minute))
		_, err = s.AddCounter(ctx, o, "images", "a", 1)
		require.NoError(t, err)
	}
	for kind, n := range s.entries() {
		assert.Equal(t, users, n, kind)
	}

	clock.Advance(CounterLife)
	for range users {
		_, err := s.Counter(ctx, store.Owner{Kind: store.OwnerGlobal}, "images")
		require.NoError(t, err)
	}
	for kind, n := range s.entries() {
		assert.Zero(t, n, kind)
	}
}

func TestAFullBucketIsNotKept(t *testing.T) {
	s := New(storetest.NewClock())
	o, b := store.Owner{Kind: store.OwnerGlobal}, store.Bucket{Units: 1, Per: time.Second, Burst: 5}
	_, err := s.Admit(ctx, store.Admission{ID: "a", Owner: o, Items: []store.Item{
		{Limit: "turn", Take: &store.Take{Bucket: b, Cost: 1, Reserve: time.Minute}},
	}})
	require.NoError(t, err)
	assert.Equal(t, 1, s.buckets.len())
	_, err = s.Settle(ctx, store.Reservation{ID: "a", Owner: o, Limit: "turn", Bucket: b}, 0)
	require.NoError(t, err)
	assert.Zero(t, s.buckets.len())
}

func TestALookKeepsNothing(t *testing.T) {
	s := New(storetest.NewClock())
	o, b := store.Owner{Kind: store.OwnerGlobal}, store.Bucket{Units: 1, Per: time.Second, Burst: 5}
	_, err := s.Admit(ctx, store.Admission{ID: "a", Owner: o, Items: []store.Item{
		{Limit: "a", Take: &store.Take{Bucket: b}},
		{Limit: "b", Room: &store.Room{Bucket: b, Cost: 5}},
	}})
	require.NoError(t, err)
	assert.Zero(t, s.buckets.len())
	assert.Zero(t, s.reservations.len())
}

// Case 016, step 3: the settlement, not the take, says how long the level lives.
func TestCase016ADebtIsKeptUntilItIsPaidBack(t *testing.T) {
	clock := storetest.NewClock()
	s := New(clock)
	o, b := store.Owner{Kind: store.OwnerGlobal}, store.Bucket{Units: 1, Per: time.Millisecond, Burst: 60000}
	_, err := s.Admit(ctx, store.Admission{ID: "a", Owner: o, Items: []store.Item{
		{Limit: "tokens", Take: &store.Take{Bucket: b, Cost: 6000, Reserve: time.Minute}},
	}})
	require.NoError(t, err)
	_, err = s.Settle(ctx, store.Reservation{ID: "a", Owner: o, Limit: "tokens", Bucket: b}, 186000)
	require.NoError(t, err)
	kept := s.buckets.entries[limitKey{o, "tokens"}]
	require.NotNil(t, kept)
	assert.EqualValues(t, 186000, kept.expires-clock.Now().UnixMilli())
}

func TestTheNewestRecordsAreKeptAndTheOthersCounted(t *testing.T) {
	s := New(storetest.NewClock())
	s.usage.max = 3
	record := func(id string) bool {
		fresh, err := s.Record(ctx, store.Record{ID: id})
		require.NoError(t, err)
		return fresh
	}
	for i := range 7 {
		assert.True(t, record(fmt.Sprint(i)))
	}
	records, err := s.Records(ctx, store.Owner{Kind: store.OwnerGlobal})
	require.NoError(t, err)
	var ids []string
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	assert.Equal(t, []string{"4", "5", "6"}, ids)
	assert.EqualValues(t, 4, s.Dropped())
	assert.Len(t, s.usage.known, 3)
	assert.False(t, record("4"), "a kept one is recognised")
	assert.True(t, record("0"), "a dropped one is not")
}

func TestTheMachinesClockIsTheDefault(t *testing.T) {
	s := New(nil)
	k := store.ValueKey{Owner: store.Owner{Kind: store.OwnerGlobal}}
	require.NoError(t, s.PutValue(ctx, k, []byte("v"), time.Millisecond))
	assert.Eventually(t, func() bool {
		_, found, err := s.GetValue(ctx, k)
		return err == nil && !found
	}, 10*time.Second, time.Millisecond)
}

func TestATableKeepsWhatExpiresLast(t *testing.T) {
	table := newTable[string, int](2)
	table.put("soon", 1, 10)
	table.put("late", 2, 30)
	table.put("middle", 3, 20)
	_, found := table.get("soon", 0)
	assert.False(t, found)
	assert.Equal(t, 2, table.len())
}

func TestWhatIsGoneFromATableStaysGoneWhenTheClockStepsBack(t *testing.T) {
	table := newTable[string, int](0)
	table.put("a", 1, 10)
	_, found := table.get("a", 10)
	assert.False(t, found)
	_, found = table.get("a", 9)
	assert.False(t, found)
}

func TestATableIsAMapWithExpiries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type kept struct {
			value   int
			expires int64
		}
		table, plain, now := newTable[int, int](0), map[int]kept{}, int64(0)
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 8).Draw(t, "key")
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				expires := now + rapid.Int64Range(1, 20).Draw(t, "life")
				table.put(key, i, expires)
				plain[key] = kept{i, expires}
			case 1:
				table.drop(key)
				delete(plain, key)
			case 2:
				now += rapid.Int64Range(0, 5).Draw(t, "time")
			case 3:
				table.sweep(now, 100)
				for key, k := range plain {
					if k.expires <= now {
						delete(plain, key)
					}
				}
				require.Equal(t, len(plain), table.len())
			}
			want, known := plain[key]
			value, found := table.get(key, now)
			require.Equal(t, known && want.expires > now, found)
			if found {
				require.Equal(t, want.value, value)
			}
		}
	})
}
