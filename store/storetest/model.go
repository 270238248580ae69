package storetest

import (
	"math/big"

	"github.com/hookhost/hookhost/store"
)

// Model is a bucket as it is defined, in rationals. Times and waits are
// milliseconds. An engine agrees with it to the last unit.
type Model struct {
	Level *big.Rat // nil: nothing is known, which is full
	Per   int64    // of the rate that Level was last written under, reduced
	Stamp int64
	until *big.Int // when the level is full and forgotten; nil for never
}

func integer(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) } // Euclidean: the denominator is positive

func ceil(r *big.Rat) *big.Int {
	n := floor(new(big.Rat).Neg(r))
	return n.Neg(n)
}

func sum(a, b *big.Rat) *big.Rat        { return new(big.Rat).Add(a, b) }
func difference(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func smaller(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// rate is in units a millisecond.
func rate(b store.Bucket) *big.Rat { return big.NewRat(b.Units, b.Per.Milliseconds()) }

// timeFor is how long it takes until so many units came back, rounded up.
func timeFor(b store.Bucket, units *big.Rat) *big.Int {
	if units.Sign() <= 0 {
		return new(big.Int)
	}
	return ceil(new(big.Rat).Quo(units, rate(b)))
}

// At refills to now.
func (m Model) At(b store.Bucket, now int64) Model {
	per := rate(b).Denom().Int64()
	if m.Level == nil || m.until != nil && big.NewInt(now).Cmp(m.until) >= 0 {
		return Model{Level: integer(b.Burst), Per: per, Stamp: now}
	}
	level := m.Level
	if m.Per != per {
		whole := new(big.Rat).SetInt(floor(level))
		parts := floor(new(big.Rat).Mul(difference(level, whole), integer(per)))
		level = sum(whole, new(big.Rat).SetFrac(parts, big.NewInt(per)))
	}
	if now > m.Stamp {
		elapsed := difference(integer(now), integer(m.Stamp))
		level = sum(level, new(big.Rat).Mul(elapsed, rate(b)))
	}
	return Model{Level: smaller(level, integer(b.Burst)), Per: per, Stamp: max(m.Stamp, now)}
}

// write keeps a level until it would be full.
func (m *Model) write(b store.Bucket, next Model) {
	next.until = new(big.Int).Add(big.NewInt(next.Stamp), timeFor(b, difference(integer(b.Burst), next.Level)))
	if next.Level.Cmp(integer(b.Burst)) >= 0 {
		next = Model{}
	}
	*m = next
}

// look forgets a level that is full, as every call on the bucket does.
func (m *Model) look(b store.Bucket, now int64) Model {
	if m.until != nil && big.NewInt(now).Cmp(m.until) >= 0 {
		*m = Model{}
	}
	return m.At(b, now)
}

// Balance is the level, floored.
func (m *Model) Balance(b store.Bucket, now int64) *big.Int { return floor(m.look(b, now).Level) }

// Take is the model of store.Take.
func (m *Model) Take(b store.Bucket, cost, maxWait, now int64) (kind store.Kind, wait, balance *big.Int) {
	next := m.look(b, now)
	limit := big.NewInt(maxWait)
	if timeFor(b, integer(cost-b.Burst)).Cmp(limit) > 0 {
		return store.Never, new(big.Int), floor(next.Level)
	}
	missing := difference(integer(cost), next.Level)
	wait = timeFor(b, missing)
	tooLong := new(big.Int).Sub(wait, limit)
	tooDeep := timeFor(b, difference(missing, integer(store.MaxUnits)))
	if tooDeep.Cmp(tooLong) > 0 {
		tooLong = tooDeep
	}
	if tooLong.Sign() > 0 {
		return store.Refused, tooLong, floor(next.Level)
	}
	next.Level = difference(next.Level, integer(cost))
	if cost > 0 {
		m.write(b, next)
	}
	if wait.Sign() > 0 {
		return store.Later, wait, floor(next.Level)
	}
	return store.Now, wait, floor(next.Level)
}

// Correct is the model of settling: delta is what was charged less what was
// used.
func (m *Model) Correct(b store.Bucket, delta, now int64) (balance *big.Int) {
	next := m.look(b, now)
	next.Level = smaller(sum(next.Level, integer(delta)), integer(b.Burst))
	if lowest := integer(-store.MaxUnits); next.Level.Cmp(lowest) < 0 {
		next.Level = lowest
	}
	m.write(b, next)
	return floor(next.Level)
}
