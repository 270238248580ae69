package store

import (
	"math"
	"math/bits"
	"time"
)

// The arithmetic of a bucket, exact and without side effects. Times and waits
// are whole milliseconds; a wait that does not fit an int64 is math.MaxInt64.
// Buckets, costs and waits are those that Validate lets pass.

// Rate is a bucket's rate in lowest terms: N units every P milliseconds.
type Rate struct{ N, P int64 }

// Rate gives the reduced rate.
func (b Bucket) Rate() Rate {
	n, p := b.Units, b.Per.Milliseconds()
	for x, y := n, p; ; x, y = y, x%y {
		if y == 0 {
			return Rate{N: n / x, P: p / x}
		}
	}
}

// Level is what a bucket holds at Stamp: Units + Rest/Per, 0 <= Rest < Per.
type Level struct {
	Units, Rest, Per int64
	Stamp            int64
}

// Full is the level of a bucket that nothing is known about.
func Full(b Bucket, now int64) Level {
	return Level{Units: b.Burst, Per: b.Rate().P, Stamp: now}
}

// At is the level at now: what came back since Stamp is added, up to the
// burst. With another rate than before, Rest is floored to the new one. A now
// before Stamp adds nothing and leaves Stamp.
func (l Level) At(b Bucket, now int64) Level {
	rate := b.Rate()
	if l.Per != rate.P {
		hi, lo := bits.Mul64(uint64(l.Rest), uint64(rate.P))
		rest, _ := bits.Div64(hi, lo, uint64(l.Per))
		l.Rest, l.Per = int64(rest), rate.P
	}
	var elapsed uint64
	if now > l.Stamp {
		elapsed = uint64(now) - uint64(l.Stamp)
		l.Stamp = now
	}
	if l.Units >= b.Burst {
		return Full(b, l.Stamp)
	}
	hi, lo := bits.Mul64(elapsed, uint64(rate.N))
	lo, carry := bits.Add64(lo, uint64(l.Rest), 0)
	hi += carry
	if hi >= uint64(rate.P) {
		return Full(b, l.Stamp)
	}
	units, rest := bits.Div64(hi, lo, uint64(rate.P))
	if units >= uint64(b.Burst-l.Units) {
		return Full(b, l.Stamp)
	}
	l.Units, l.Rest = l.Units+int64(units), int64(rest)
	return l
}

// Wait is how long after Stamp the level reaches so many units. The level is
// one that At or Full gave for this bucket.
func (l Level) Wait(b Bucket, units int64) int64 {
	if units <= l.Units {
		return 0
	}
	rate := b.Rate()
	hi, lo := bits.Mul64(uint64(units-l.Units), uint64(rate.P))
	lo, borrow := bits.Sub64(lo, uint64(l.Rest), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(rate.N-1), 0) // rounds up
	hi += carry
	if hi >= uint64(rate.N) {
		return math.MaxInt64
	}
	wait, _ := bits.Div64(hi, lo, uint64(rate.N))
	return int64(min(wait, math.MaxInt64))
}

// Take charges cost if that is paid back within maxWait and leaves no debt
// over MaxUnits. The wait is, with Later, until it is paid back, with Refused,
// until the same take would be granted. Refused and Never change nothing.
func (l Level) Take(b Bucket, cost, maxWait int64) (after Level, kind Kind, wait int64) {
	if Full(b, l.Stamp).Wait(b, cost) > maxWait {
		return l, Never, 0
	}
	wait = l.Wait(b, cost)
	if until := max(wait-maxWait, l.Wait(b, cost-MaxUnits)); until > 0 {
		return l, Refused, until
	}
	l.Units -= cost
	if wait > 0 {
		return l, Later, wait
	}
	return l, Now, 0
}

// Add corrects the level by delta: never above the burst, and a debt ends at
// MaxUnits.
func (l Level) Add(b Bucket, delta int64) Level {
	l.Units += delta
	if l.Units >= b.Burst {
		l.Units, l.Rest = b.Burst, 0
	}
	if l.Units < -MaxUnits {
		l.Units, l.Rest = -MaxUnits, 0
	}
	return l
}

// MillisOf rounds up, so that nothing ends early.
func MillisOf(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > Millis(ms) {
		ms++
	}
	return ms
}

// Millis makes a Duration of milliseconds. Over 292 years it is the longest
// Duration of whole milliseconds.
func Millis(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
