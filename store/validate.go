package store

import (
	"fmt"
	"time"
)

// What every engine checks before it writes anything. A number out of range is
// ErrBadNumber and the error names its field; what is not a number is
// ErrMalformed, except a missing user id, which is ErrNoUser.

const maxProduct = 1 << 53 // of a reduced rate's N and P

func badNumber(field string, value any, want string) error {
	return fmt.Errorf("%s %v: %w: want %s", field, value, ErrBadNumber, want)
}

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// Validate checks the ranges of a bucket.
func (b Bucket) Validate() error {
	if b.Units < 1 {
		return badNumber("units", b.Units, "at least 1")
	}
	if b.Per < time.Millisecond || b.Per%time.Millisecond != 0 {
		return badNumber("per", b.Per, "whole milliseconds, at least one")
	}
	if b.Burst < 1 || b.Burst > MaxUnits {
		return badNumber("burst", b.Burst, "1 to 10^15")
	}
	if r := b.Rate(); r.N > maxProduct/r.P {
		return badNumber("units x per", fmt.Sprintf("%d x %dms", r.N, r.P), "at most 2^53 in lowest terms")
	}
	return nil
}

// Validate checks the ranges of a cap.
func (c Cap) Validate() error {
	if c.Max < 1 {
		return badNumber("max", c.Max, "at least 1")
	}
	return CheckExpiry("expires", c.Expires)
}

// CheckUnits checks a cost or an amount that was used.
func CheckUnits(field string, n int64) error {
	if n < 0 || n > MaxUnits {
		return badNumber(field, n, "0 to 10^15")
	}
	return nil
}

// CheckExpiry checks how long something is to live.
func CheckExpiry(field string, d time.Duration) error {
	if d < time.Millisecond {
		return badNumber(field, d, "at least 1ms")
	}
	return nil
}

func checkNotNegative(field string, d time.Duration) error {
	if d < 0 {
		return badNumber(field, d, "0 or more")
	}
	return nil
}

// Validate checks that an owner names somebody.
func (o Owner) Validate() error {
	switch {
	case o.Kind < OwnerUser || o.Kind > OwnerGlobal:
		return malformed("owner of no kind")
	case o.Kind == OwnerUser && o.User == "":
		return ErrNoUser
	}
	return nil
}

// Key is the owner without the fields that its kind does not use, so that two
// owners are the same exactly if their keys are equal.
func (o Owner) Key() Owner {
	switch o.Kind {
	case OwnerApp:
		o.User = ""
	case OwnerGlobal:
		o.App, o.User = "", ""
	}
	return o
}

// Validate checks an admission and all of its items.
func (a Admission) Validate() error {
	if a.ID == "" {
		return malformed("admission without an id")
	}
	if err := a.Owner.Validate(); err != nil {
		return err
	}
	if len(a.Items) == 0 {
		return malformed("admission of nothing")
	}
	seen := make(map[string]bool, len(a.Items))
	for _, item := range a.Items {
		if seen[item.Limit] {
			return fmt.Errorf("limit[%s] %w", item.Limit, malformed("twice in one admission"))
		}
		seen[item.Limit] = true
		if err := item.validate(); err != nil {
			return fmt.Errorf("limit[%s] %w", item.Limit, err)
		}
	}
	return nil
}

func (i Item) validate() error {
	switch {
	case i.Take != nil && i.Room == nil && i.Acquire == nil:
		return firstError(
			i.Take.Bucket.Validate(),
			CheckUnits("cost", i.Take.Cost),
			checkNotNegative("max wait", i.Take.MaxWait),
			checkNotNegative("reserve", i.Take.Reserve),
		)
	case i.Room != nil && i.Take == nil && i.Acquire == nil:
		return firstError(i.Room.Bucket.Validate(), CheckUnits("cost", i.Room.Cost))
	case i.Acquire != nil && i.Take == nil && i.Room == nil:
		if i.Acquire.Member == "" {
			return malformed("lease without a member")
		}
		return i.Acquire.Cap.Validate()
	}
	return malformed("item that is not exactly one of take, room and acquire")
}

// Validate checks a reservation.
func (r Reservation) Validate() error {
	if r.ID == "" {
		return malformed("reservation without an id")
	}
	return CheckBucket(r.Owner, r.Limit, r.Bucket)
}

// CheckBucket checks the bucket of an owner's limit.
func CheckBucket(owner Owner, limit string, b Bucket) error {
	if err := owner.Validate(); err != nil {
		return err
	}
	if err := b.Validate(); err != nil {
		return fmt.Errorf("limit[%s] %w", limit, err)
	}
	return nil
}

// Validate checks a lease.
func (l Lease) Validate() error {
	if l.Member == "" {
		return malformed("lease without a member")
	}
	if err := l.Owner.Validate(); err != nil {
		return err
	}
	if err := l.Cap.Validate(); err != nil {
		return fmt.Errorf("limit[%s] %w", l.Limit, err)
	}
	return nil
}

// Validate checks whose claim it is.
func (k ClaimKey) Validate() error { return k.Owner.Validate() }

// Validate checks whose value it is.
func (k ValueKey) Validate() error { return k.Owner.Validate() }

// CheckHolder checks who claims a key, and for how long.
func CheckHolder(holder string, ttl time.Duration) error {
	if holder == "" {
		return malformed("claim without a holder")
	}
	return CheckExpiry("ttl", ttl)
}

// CheckAddition checks an addition to a counter.
func CheckAddition(owner Owner, name, id string, delta int64) error {
	if err := owner.Validate(); err != nil {
		return err
	}
	if id == "" {
		return malformed("addition without an id")
	}
	if delta < -MaxUnits || delta > MaxUnits {
		return fmt.Errorf("counter[%s] %w", name, badNumber("delta", delta, "-10^15 to 10^15"))
	}
	return nil
}

// Validate checks who is put on a plan.
func (o Override) Validate() error {
	if o.User == "" {
		return ErrNoUser
	}
	return nil
}

// CheckSamples checks what an average is to learn.
func CheckSamples(id string, samples []Sample) error {
	if id == "" {
		return malformed("samples without an id")
	}
	for _, s := range samples {
		if s.Calls < 0 || s.Calls > 1e6 {
			return badNumber("calls", s.Calls, "0 to 1,000,000")
		}
		if s.Units < 0 || s.Units > 1e13 || s.Calls == 0 && s.Units > 0 {
			return badNumber("units", s.Units, "0 to 10^13, and 0 of no calls")
		}
	}
	return nil
}

// Validate checks a usage record.
func (r Record) Validate() error {
	if r.ID == "" {
		return malformed("record without an id")
	}
	for _, n := range r.Tokens.named() {
		if n.count == nil {
			continue
		}
		if err := CheckUnits(n.name, *n.count); err != nil {
			return err
		}
	}
	return firstError(checkNotNegative("elapsed", r.Elapsed), checkNotNegative("first chunk", r.FirstChunk))
}

type namedCount struct {
	name  string
	count *int64
}

func (t Tokens) named() [6]namedCount {
	return [6]namedCount{
		{"prompt", t.Prompt},
		{"candidates", t.Candidates},
		{"cached", t.Cached},
		{"thoughts", t.Thoughts},
		{"tool use", t.ToolUse},
		{"total", t.Total},
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
