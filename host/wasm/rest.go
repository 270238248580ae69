package wasm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/hookhost/hookhost/chain"
)

const (
	// crashBudget is how many crashes in a row a stage is given.
	crashBudget = 50
	// restFor is how long it is left alone then, before one call tries again: a
	// guest that spins would hold a processor for nothing.
	restFor = time.Second
)

// rest keeps calls from a stage that does nothing but crash.
type rest struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	last    atomic.Pointer[chain.Failure] // the crash before
}

// newRest tells resting when a rest begins.
func newRest(resting func(last *chain.Failure)) *rest {
	r := &rest{}
	r.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     restFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= crashBudget },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNothingLearned) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			if from == gobreaker.StateClosed && to == gobreaker.StateOpen {
				resting(r.last.Load())
			}
		},
	})
	return r
}

// begin lets a call run. Its end has to be told. While the stage rests it fails
// with the cause of the crash before.
func (r *rest) begin() (end func(error), err error) {
	done, err := r.breaker.Allow()
	if err != nil {
		last := r.last.Load()
		return nil, &chain.Failure{Cause: last.Cause, Err: fmt.Errorf("%w, the last of %d in a row: %w", ErrResting, crashBudget, last.Err)}
	}
	return func(err error) {
		if f := (*chain.Failure)(nil); errors.As(err, &f) {
			err = r.judge(f)
		}
		done(err)
	}, nil
}

// judge is what a failure says of a stage: that it crashed, nothing, or, for
// nil, that it ran to its end.
func (r *rest) judge(f *chain.Failure) error {
	switch f.Cause {
	case chain.CauseTrap, chain.CauseDeadline, chain.CauseMemory, chain.CauseDepth, chain.CauseHostCalls:
		r.last.Store(f)
		return f
	case chain.CauseCancelled, chain.CausePoolFull:
		return errNothingLearned
	}
	return nil
}

var errNothingLearned = errors.New("the call ended for another reason")
