package guest

import (
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Estimate as a cost is the estimate of the user's plan.
const Estimate = abi.EstimateOfPlan

// Decision is what the limits decided.
type Decision struct {
	Kind  abi.Decision
	Limit string        // which of the limits decided
	Wait  time.Duration // until it may be used, with Delayed; until it would be granted, with Denied
	// Reservation is for Settle and Release. It is 0 when there is nothing to
	// settle.
	Reservation int64
}

// Admit asks for several limits at once, all or nothing: a lease is held for
// the run, a bucket with an estimate has to hold what the plan says of a
// turn, any other bucket pays one. A limit that the plan does not have is
// skipped.
func (c *Call) Admit(limits ...string) (Decision, error) {
	names := ""
	for i, name := range limits {
		if i > 0 {
			names += "\n"
		}
		names += name
	}
	return decision(limits, func(out []byte) int32 { return c.border.LimitAdmit(names, out) })
}

// Take charges a bucket, now or after a wait of up to the plan's max_wait. A
// bucket with an estimate keeps the charge open as a reservation of this
// operation.
func (c *Call) Take(limit string, cost int64) (Decision, error) {
	return decision([]string{limit}, func(out []byte) int32 { return c.border.LimitTake(limit, cost, out) })
}

// Settle replaces what a reservation charged by what was used.
func (c *Call) Settle(reservation, actual int64) error {
	return check(c.border.LimitSettle(reservation, actual))
}

// Release gives a reservation back.
func (c *Call) Release(reservation int64) error { return check(c.border.LimitRelease(reservation)) }

// decision reads a decision record about these limits.
func decision(limits []string, decide func(out []byte) int32) (Decision, error) {
	var record [abi.DecisionSize]byte
	if n := decide(record[:]); n < 0 {
		return Decision{}, Error(n)
	}
	d := Decision{
		Kind:        abi.Decision(uint32At(record[:], abi.DecisionKind)),
		Wait:        time.Duration(int64At(record[:], abi.DecisionWait)) * time.Millisecond,
		Reservation: int64At(record[:], abi.DecisionID),
	}
	if i := uint32At(record[:], abi.DecisionLimit); int(i) < len(limits) {
		d.Limit = limits[i]
	}
	return d, nil
}
