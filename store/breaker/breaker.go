// Package breaker keeps calls from a store that is away: after a few that it
// did not answer in a row the rest fail at once, until one that is let through
// now and then is answered. What to do meanwhile is the caller's.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/hookhost/hookhost/store"
)

const (
	// Failures in a row mean that the store is away. A server that restarts or
	// fails over costs one connection its reply, and those who call at the same
	// time theirs: five is more than that, and little enough that a lone caller
	// has waited for five timeouts at most in all.
	Failures = 5
	// ProbeEvery is how long a store that is away is left alone before one call
	// is let through to see whether it is back.
	ProbeEvery = time.Second
)

// Options are what a breaker tells.
type Options struct {
	// Timeout is the time that the store takes for a call. One that had less of
	// it left and ran out of time says nothing of the store. 0 lets all of them
	// count.
	Timeout time.Duration
	// Switched is called once when the store goes away, with the failure that
	// decided it, and once when it is back, with nil. It runs while calls wait:
	// it must be short and may not call the store.
	Switched func(away bool, cause error)
}

// New puts a breaker before a store. Closing it closes the store.
func New(inner store.Store, o Options) store.Store {
	b := &breaker{inner: inner, enough: o.Timeout - o.Timeout/10}
	b.circuit = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     ProbeEvery,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= Failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNeutral) },
		IsSuccessful: func(err error) bool {
			b.last = err // the circuit's lock is held, as it is in OnStateChange
			return err == nil
		},
		OnStateChange: func(_ string, from, to gobreaker.State) {
			// A probe that fails opens what was never closed: no switch.
			switch {
			case o.Switched == nil:
			case to == gobreaker.StateClosed:
				o.Switched(false, nil)
			case from == gobreaker.StateClosed:
				o.Switched(true, b.last)
			}
		},
	})
	return b
}

type breaker struct {
	inner   store.Store
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
	enough  time.Duration // that a call needs to count: callers take a little of the store's own time to get here
	last    error
}

var (
	errAway     = fmt.Errorf("breaker: %w: not asked, it did not answer before", store.ErrUnavailable)
	errPanicked = errors.New("the call panicked")
	// errNeutral says nothing of the store.
	errNeutral = errors.New("neutral")
)

// works is of calls whose every success shows that the store does its work. A
// replica answers reads, and a server without memory also takes back what it
// gave: they show nothing, which is nil. Such calls never see whether the store
// is back, nor are they in the way of one that could.
func works[T any](T) bool { return true }

func guard[T any](ctx context.Context, b *breaker, shows func(T) bool, call func() (T, error)) (result T, err error) {
	hurried := b.hurried(ctx)
	if (shows == nil || hurried) && b.circuit.State() != gobreaker.StateClosed {
		return result, errAway
	}
	done, err := b.circuit.Allow()
	if err != nil {
		return result, errAway
	}
	shown := errPanicked
	defer func() { done(shown) }()
	result, err = call()
	shown = counted(ctx, err, hurried)
	if err == nil && (shows == nil || !shows(result)) {
		shown = errNeutral
	}
	return result, err
}

// hurried reports whether a call has less time than the store takes.
func (b *breaker) hurried(ctx context.Context) bool {
	deadline, bound := ctx.Deadline()
	return ctx.Err() != nil || bound && time.Until(deadline) < b.enough
}

// counted turns what a call ended with into what the circuit counts: nil, a
// failure, or errNeutral. A caller that went away or was in a hurry, a request
// that was refused before it was sent, and what keeps the store from this one
// thing say nothing of it. A deadline that left it its time does.
func counted(ctx context.Context, err error, hurried bool) error {
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded):
		return errNeutral
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, store.ErrOnlyThis):
		return errNeutral
	case hurried && (ctx.Err() != nil || isTimeout(err)):
		return errNeutral
	}
	return err
}

// isTimeout is also of a connection that got the deadline of its caller and
// noticed it first.
func isTimeout(err error) bool {
	var timed interface{ Timeout() bool }
	return errors.As(err, &timed) && timed.Timeout()
}
