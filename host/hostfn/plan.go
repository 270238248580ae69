package hostfn

import (
	"context"
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

// share is the part of a limit that one of several processes may give out, at
// least one unit.
func (l Limit) share(processes int64) Limit {
	part := func(n int64) int64 { return max(1, n/max(1, processes)) }
	if l.Bucket != nil {
		b := *l.Bucket
		b.Units, b.Burst = part(b.Units), part(b.Burst)
		l.Bucket = &b
	}
	if l.Cap != nil {
		c := *l.Cap
		c.Max = part(c.Max)
		l.Cap = &c
	}
	return l
}
