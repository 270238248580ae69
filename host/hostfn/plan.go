package hostfn

import (
	"time"

	"github.com/hookhost/hookhost/store"
)

// Plans knows the numbers: guests only name a limit.
type Plans interface {
	// Plan names the plan that a user is on now.
	Plan(app, user string) string
	// Limit finds the definition of a limit for a user. The scope is empty for
	// the user's own, app or global. A limit that is not defined does not limit.
	Limit(app, user, name, scope string) (Limit, bool)
}

// Limit is the definition of a limit. Exactly one of Bucket and Cap is set.
type Limit struct {
	Plan   string
	Shadow bool // decided and noted in a key space of its own, and never in the way
	Bucket *store.Bucket
	Cap    *store.Cap

	Estimate     int64 // what one model call takes until its usage is known; 0 where units are not tokens
	TurnEstimate int64 // what has to be there for a run to begin; 0 asks for nothing
	MaxWait      time.Duration
}

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
