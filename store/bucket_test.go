package store_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/storetest"
)

func TestRateIsReduced(t *testing.T) {
	for _, c := range []struct {
		units int64
		per   time.Duration
		want  store.Rate
	}{
		{20, time.Minute, store.Rate{N: 1, P: 3000}},
		{60000, time.Minute, store.Rate{N: 1, P: 1}},
		{3, 24 * time.Hour, store.Rate{N: 1, P: 28_800_000}},
		{75, time.Second, store.Rate{N: 3, P: 40}},
		{7, time.Millisecond, store.Rate{N: 7, P: 1}},
	} {
		assert.Equal(t, c.want, store.Bucket{Units: c.units, Per: c.per, Burst: 1}.Rate())
	}
}

func TestMillisSaturates(t *testing.T) {
	assert.Equal(t, 3*time.Second, store.Millis(3000))
	longest := store.Millis(math.MaxInt64)
	assert.Zero(t, longest%time.Millisecond)
	assert.Less(t, math.MaxInt64-longest, time.Millisecond)
}

// FuzzLevel holds one step of the arithmetic, from any level, to rationals.
func FuzzLevel(f *testing.F) {
	f.Add(int64(0), int64(0), int64(1), int64(0), int64(1), int64(1), int64(1), int64(0), int64(0), int64(0), int64(0))
	f.Add(int64(-126000), int64(0), int64(1), int64(0), int64(60000), int64(60000), int64(60000), int64(130000), int64(6000), int64(2000), int64(5))
	f.Add(int64(-5), int64(6), int64(7), int64(3), int64(2), int64(3), int64(9), int64(4), int64(8), int64(9), int64(100))
	f.Add(int64(0), int64(1), int64(1<<32), int64(0), int64(1<<21-1), int64(1<<32), int64(1<<32), int64(0), int64(1<<32), int64(0), int64(-7)) // the wait borrows from its upper half
	f.Add(int64(-store.MaxUnits), int64(1<<53-2), int64(1<<53-1), int64(math.MinInt64), int64(1), int64(1<<53), int64(store.MaxUnits), int64(math.MaxInt64), int64(store.MaxUnits), int64(9_000_000_000_000), int64(-store.MaxUnits))
	f.Add(int64(-store.MaxUnits), int64(0), int64(1), int64(math.MaxInt64), int64(1<<53), int64(1), int64(store.MaxUnits), int64(math.MinInt64), int64(store.MaxUnits), int64(1), int64(store.MaxUnits))
	f.Fuzz(func(t *testing.T, held, rest, oldPer, stamp, units, per, burst, now, cost, maxWait, delta int64) {
		const longest = math.MaxInt64 / int64(time.Millisecond)
		per = fold(per, 1, longest)
		b := store.Bucket{Units: fold(units, 1, (1<<53)/per), Per: store.Millis(per), Burst: fold(burst, 1, store.MaxUnits)}
		require.NoError(t, b.Validate())
		held, oldPer = fold(held, -store.MaxUnits, store.MaxUnits), fold(oldPer, 1, 1<<53)
		rest = fold(rest, 0, oldPer-1)
		cost, maxWait = fold(cost, 0, store.MaxUnits), fold(maxWait, 0, longest)
		delta = fold(delta, -store.MaxUnits, store.MaxUnits)

		model := storetest.Model{Level: rational(held, rest, oldPer), Per: oldPer, Stamp: stamp}
		start := store.Level{Units: held, Rest: rest, Per: oldPer, Stamp: stamp}

		level, want := start.At(b, now), model.At(b, now)
		require.Equal(t, want.Stamp, level.Stamp)
		require.Equal(t, want.Per, level.Per)
		require.Zero(t, want.Level.Cmp(rational(level.Units, level.Rest, level.Per)), "%v, not %v", level, want.Level)
		require.True(t, level.Rest >= 0 && level.Rest < level.Per)

		taken := model
		kind, wait, balance := taken.Take(b, cost, maxWait, now)
		after, gotKind, gotWait := level.Take(b, cost, maxWait)
		require.Equal(t, kind, gotKind)
		require.Equal(t, saturated(wait), store.Millis(gotWait))
		require.Equal(t, balance.Int64(), after.Units)

		corrected := model
		added := level.Add(b, delta)
		require.Equal(t, corrected.Correct(b, delta, now).Int64(), added.Units)
		if corrected.Level != nil {
			require.Zero(t, corrected.Level.Cmp(rational(added.Units, added.Rest, added.Per)))
		} else {
			require.Equal(t, store.Full(b, level.Stamp), added)
		}
	})
}

// fold brings a number into a range and leaves one that is in it.
func fold(n, least, most int64) int64 {
	if n >= least && n <= most {
		return n
	}
	return least + int64(uint64(n)%uint64(most-least+1))
}

func rational(units, rest, per int64) *big.Rat {
	r := big.NewRat(rest, per)
	return r.Add(r, big.NewRat(units, 1))
}

func saturated(ms *big.Int) time.Duration {
	if !ms.IsInt64() {
		return store.Millis(math.MaxInt64)
	}
	return store.Millis(ms.Int64())
}
