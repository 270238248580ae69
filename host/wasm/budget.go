package wasm

import (
	"context"
	"errors"
	"runtime"
	"time"
)

const (
	// sliceTime is how long a guest should run between two looks at the clock.
	sliceTime = 100 * time.Microsecond
	// firstSlice is the fuel of a call's first slice, when it is not known how
	// fast the guest burns it; leastSlice and mostSlice bound what is learned.
	// A guest can burn fuel quickly on purpose, to be given a large slice for
	// what is slow: with mostSlice it gains some milliseconds.
	firstSlice = 100_000
	leastSlice = 2_000
	mostSlice  = 2_000_000

	// callDepth is what the frames of one call may cost together, in the
	// measure of package meter.
	callDepth = 65_536

	// maxHostCalls is how many functions a guest may call in one call.
	maxHostCalls = 100_000
	// hostCallFuel is what each of them costs, with fuelBytes bytes to one more.
	hostCallFuel = 500
	fuelBytes    = 4
	// chargedBytes is how much a function moves between two looks at the clock.
	chargedBytes = 1 << 20
)

// budget is what one call of a guest may use. Time is the limit. Fuel is only
// how the guest is made to look at the clock, in slices that adapt to its
// speed, from call to call anew; what was burned is a diagnostic.
type budget struct {
	ctx      context.Context
	deadline time.Time

	slice  int64 // fuel until the next look
	given  int64 // fuel of the slice that is running
	hosted int64 // of it, what host functions cost
	since  time.Time
	fuel   int64 // burned in the slices before

	hostCalls int
	bytes     int64 // moved by the function that is running
	unseen    int64 // bytes since the last look at the clock
}

// begin starts a call and gives the first slice.
func (b *budget) begin(ctx context.Context) int64 {
	deadline, _ := ctx.Deadline() // there is one: no call is without
	*b = budget{ctx: ctx, deadline: deadline, slice: firstSlice, given: firstSlice, since: time.Now()}
	return b.slice
}

// end closes the account with what is left of the slice.
func (b *budget) end(left int64) {
	b.fuel += b.given - left
	b.given, b.ctx = 0, nil
}

// tick gives the next slice. It does not return when the call is over.
func (b *budget) tick(left int64) int64 {
	now := time.Now()
	burned := b.given - left
	b.fuel += burned
	b.given = 0
	b.check(now)
	b.adapt(burned-b.hosted, now.Sub(b.since))
	b.hosted = 0
	// Nothing preempts compiled code: without this a collection waits for every
	// guest in turn, and so do the goroutines of one processor.
	runtime.Gosched()
	b.since, b.given = time.Now(), b.slice
	return b.slice
}

// check panics with why the call is over, if it is.
func (b *budget) check(now time.Time) {
	switch err := b.ctx.Err(); {
	case errors.Is(err, context.Canceled):
		panic(ErrCancelled)
	case err != nil, !now.Before(b.deadline):
		panic(ErrDeadline)
	}
}

// adapt makes the next slice last about sliceTime, going by how long the
// guest's own code took for what it burned of the last one. A slice that was
// interrupted looks slow, so it goes down in steps.
func (b *budget) adapt(burned int64, took time.Duration) {
	if burned <= 0 {
		return
	}
	next := mostSlice * 1.0
	if took > 0 {
		next = float64(burned) * float64(sliceTime) / float64(took)
	}
	next = min(max(next, float64(b.slice)/4), float64(b.slice)*2)
	b.slice = int64(min(max(next, leastSlice), mostSlice))
}

// enter counts a call of a host function, and looks at the clock: what those
// take goes by no fuel.
func (b *budget) enter() {
	if b.hostCalls++; b.hostCalls > maxHostCalls {
		panic(ErrHostCalls)
	}
	b.check(time.Now())
	b.bytes = 0
}

// charge counts bytes before they are moved, and looks at the clock between.
func (b *budget) charge(bytes int) {
	b.bytes += int64(bytes)
	if b.unseen += int64(bytes); b.unseen >= chargedBytes {
		b.unseen = 0
		b.check(time.Now())
	}
}

// leave is what the host function cost, in fuel.
func (b *budget) leave() int64 {
	cost := hostCallFuel + b.bytes/fuelBytes
	b.hosted += cost
	return cost
}
