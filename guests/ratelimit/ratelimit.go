package main

import (
	"strconv"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest"
)

// hooks are the points at which something is taken or given back. The lease
// of a run is the host's to give back.
func hooks() guest.Hooks {
	l := &limiter{names: defaultNames}
	return guest.Hooks{
		Configure:    l.configure,
		BeforeRun:    l.admit,
		BeforeModel:  l.reserve,
		AfterModel:   func(c *guest.Call) guest.Verdict { return l.end(c, outcome(c)) },
		OnModelError: func(c *guest.Call) guest.Verdict { return l.end(c, failure(c)) },
		Close:        func(c *guest.Call) guest.Verdict { return l.end(c, c.Reason()) },
	}
}

// limiter knows what the limits are called in the plans.
type limiter struct{ names names }

// admit lets a run begin, or refuses it at once: someone who has just sent a
// message would rather read a no than look at nothing.
func (l *limiter) admit(c *guest.Call) guest.Verdict {
	wanted := l.names.used()
	if c.Cancelled() || len(wanted) == 0 {
		return guest.Continue
	}
	d, err := c.Admit(wanted...)
	if err != nil {
		return guest.Fail
	}
	what := l.names.of(d.Limit)
	switch d.Kind {
	case abi.Admitted:
		return guest.Continue
	case abi.Delayed:
		return c.Wait(d.Wait)
	case abi.Denied:
		return c.Refuse("limit."+what, l.names.refused(d.Limit)+" "+comeBack(d.Wait), d.Wait)
	default:
		return c.Refuse("limit."+what, never(d.Limit), 0)
	}
}

// reservation is the key under which an operation keeps the id.
const reservation = "reservation"

// reserve takes the plan's estimate for a model call. Work that has begun is
// better delayed than given up, so it waits for as long as the plan allows.
func (l *limiter) reserve(c *guest.Call) guest.Verdict {
	if c.Cancelled() || l.names.tokens == "" {
		return guest.Continue
	}
	d, err := c.Take(l.names.tokens, guest.Estimate)
	if err != nil {
		return guest.Fail
	}
	switch d.Kind {
	case abi.Denied:
		return c.Refuse("limit.tokens", stopped(l.names.tokens)+" "+comeBack(d.Wait), d.Wait)
	case abi.NeverFits:
		return c.Refuse("limit.tokens", stopped(l.names.tokens)+" "+never(l.names.tokens), 0)
	}
	if d.Reservation != 0 {
		if err := c.Op().Set(reservation, strconv.FormatInt(d.Reservation, 10)); err != nil {
			return guest.Fail
		}
	}
	return c.Wait(d.Wait) // goes on at once when there is nothing to wait for
}

// outcome is how the model call of an AfterModel ended.
func outcome(c *guest.Call) abi.Reason {
	if c.Source() == abi.SourceAnswered {
		return abi.ReasonAnswered
	}
	return abi.ReasonDone
}

// failure is how the model call of an OnModelError ended.
func failure(c *guest.Call) abi.Reason {
	if c.Cancelled() {
		return abi.ReasonCancelled
	}
	return abi.ReasonError
}

// end gives the reservation of a model call its due: nothing was spent when
// nothing ran, as when the caller left during the wait, or when the provider
// failed without a word on usage; what was spent is charged as far as it is
// known; and where it is not, the estimate stays, because the provider bills
// what it made. The error itself goes on, so that
// who retries sees it.
//
// The value is never held up for this: the host takes it, and tells the store
// when it can. What it did not take stays with the operation, and is settled
// at its end.
func (l *limiter) end(c *guest.Call, how abi.Reason) guest.Verdict {
	id, open := openReservation(c)
	if !open || c.Late() {
		return guest.Continue
	}
	var err error
	switch usage := c.Usage(); {
	case c.NotBegun(), how == abi.ReasonAnswered, how == abi.ReasonRefused:
		err = c.Release(id)
	case usage.Known():
		err = c.Settle(id, usage.Spent())
	case how == abi.ReasonError:
		err = c.Release(id)
	default:
		return guest.Continue
	}
	if err != nil {
		c.Note("settle", err.Error())
		return guest.Continue
	}
	c.Op().Delete(reservation)
	return guest.Continue
}

func openReservation(c *guest.Call) (id int64, open bool) {
	text, found := c.Op().Get(reservation)
	if !found {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}
