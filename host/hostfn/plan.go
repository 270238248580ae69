package hostfn

import (
	"context"
	"math"
	"time"

	"github.com/hookhost/hookhost/store"
)

// Plans knows the numbers: guests only name a limit. The context is that of
// the call, with what the caller of the runner put into it.
type Plans interface {
	// Plan names the plan that a user is on now.
	Plan(ctx context.Context, app, user string) string
	// Limit finds the definition of a limit for a user. The scope is empty for
	// the user's own, app or global. A limit that is not defined does not limit.
	Limit(ctx context.Context, app, user, name, scope string) (Limit, bool)
	// Version names the state of the plans, for those who read of decisions.
	Version() string
}

// Limit is the definition of a limit. Exactly one of Bucket and Cap is set.
type Limit struct {
	Plan   string // "app" and "global" for the limits of those scopes
	Shadow bool   // decided, noted and counted in a key space of its own, and never in the way
	Bucket *store.Bucket
	Cap    *store.Cap

	Estimate     Estimate // what one model call takes until its usage is known
	TurnEstimate int64    // what has to be there for a run to begin; 0 asks for nothing
	MaxWait      time.Duration

	// Slice is how many units of a bucket of the app or of all this process
	// takes ahead, up to the burst, so that most calls ask nobody; 0 for none.
	// See package ahead for what that does to the bound.
	Slice int64
}

// Estimate says how much a model call is charged before it began. Its zero
// value is of limits whose units are not tokens: a call takes one, and no
// usage settles it.
type Estimate struct {
	By    EstimateBy
	Units int64
}

// EstimateBy is a way to estimate.
type EstimateBy uint8

// The ways. Units is the estimate itself where it is fixed, what is added for
// the output to a fourth of the bytes of the request where it goes by size, and
// what stands until something was learned.
const (
	Fixed EstimateBy = 1 + iota
	Size
	Learned
)

// tokens reports whether the limit counts them.
func (l Limit) tokens() bool { return l.Estimate.By != 0 }

// share is the part of a limit that one of several processes may give out: at
// least one unit, and of a bucket at least what one call asks for, up to the
// whole burst, since a call that never fits a share would fit in no process.
func (l Limit) share(processes, call int64) Limit {
	processes = max(1, processes)
	if l.Bucket != nil {
		b := rateOf(*l.Bucket, processes)
		call = max(call, l.Estimate.Units, l.TurnEstimate) // the same for all calls, where it can be
		b.Burst = max(1, b.Burst/processes, min(call, b.Burst))
		l.Bucket = &b
	}
	if l.Cap != nil {
		c := *l.Cap
		c.Max = max(1, c.Max/processes)
		l.Cap = &c
	}
	return l
}

// rateOf slows a bucket down to one of so many parts: exactly, or to the next
// slower rate that a bucket can have.
func rateOf(b store.Bucket, parts int64) store.Bucket {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	rate := b.Rate()
	units, millis := rate.N, rate.P
	if millis <= longest/parts {
		b.Units, b.Per = units, time.Duration(millis*parts)*time.Millisecond
		if b.Validate() == nil {
			return b
		}
	}
	if units >= parts {
		b.Units, b.Per = units/parts, time.Duration(millis)*time.Millisecond
		return b
	}
	perUnit := longest
	if millis/units < longest/parts {
		perUnit = min(longest, millis/units*parts+(millis%units*parts+units-1)/units) // rounded up; units < parts
	}
	b.Units, b.Per = 1, time.Duration(perUnit)*time.Millisecond
	return b
}
