package hostfn

import (
	"math"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Some of what the host does for a guest cannot be ended half way, and the
// edits of a verdict are made when the guest has returned. Both count as the
// call's time all the same: what would take longer than is left, and the grace
// by which the host may be late, is not begun. The costs are those of a server
// of today, rounded up.
const (
	grace              = 5 * time.Millisecond
	costOfEdit         = 1200 * time.Nanosecond
	costOfValue        = 250 * time.Nanosecond // of JSON, to decode
	bytesOfMillisecond = 300_000               // of JSON, to make
)

// left is how long the host may still work for this call.
func (c *Call) left() time.Duration {
	deadline, is := c.ctx.Deadline()
	if !is {
		return math.MaxInt64
	}
	return time.Until(deadline) + grace
}

// affordableJSON is how many bytes of JSON can be made in what is left.
func (c *Call) affordableJSON() int {
	return max(0, int(min(c.left(), time.Minute).Milliseconds()*bytesOfMillisecond))
}

// Affordable reports whether what a verdict asks for can be done in what is
// left of the call's time.
func (c *Call) Affordable(v abi.Verdict) bool {
	if v.Kind != abi.Amend && v.Kind != abi.Respond {
		return true
	}
	return time.Duration(len(v.Edits))*costOfEdit+time.Duration(c.draft.values)*costOfValue <= c.left()
}
