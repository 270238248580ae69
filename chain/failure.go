package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookhost/hookhost/abi"
)

// Failure is why one call of a stage came to no verdict.
type Failure struct {
	Cause Cause
	Err   error // the detail: for the log, never for the model or the user
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Cause, f.Err) }

// Unwrap gives the detail.
func (f *Failure) Unwrap() error { return f.Err }

// Is matches ErrFailed, and context.DeadlineExceeded for a stage that ran out
// of time.
func (f *Failure) Is(target error) bool {
	return target == ErrFailed || f.Cause == CauseDeadline && target == context.DeadlineExceeded
}

// ErrFailed matches every failure of a stage.
var ErrFailed = errors.New("stage failed")

// StageError says which stage failed at which hook.
type StageError struct {
	Stage string
	Hook  abi.Hook
	Err   error
}

func (e *StageError) Error() string { return fmt.Sprintf("stage[%s] %s: %v", e.Stage, e.Hook, e.Err) }

// Unwrap gives the failure.
func (e *StageError) Unwrap() error { return e.Err }

// failureOf finds the cause. Being cut off is the caller's doing only where the
// caller did go away: a stage that says so on its own account has failed.
func failureOf(caller context.Context, err error) *Failure {
	f := &Failure{Cause: CauseTrap, Err: err}
	switch known := (*Failure)(nil); {
	case errors.As(err, &known):
		f.Cause, f.Err = known.Cause, known.Err
	case errors.Is(err, context.DeadlineExceeded):
		f.Cause = CauseDeadline
	case errors.Is(err, context.Canceled):
		f.Cause = CauseCancelled
	}
	switch {
	case (f.Cause == CauseDeadline || f.Cause == CauseCancelled) && caller.Err() != nil:
		f.Cause = CauseCancelled
	case f.Cause == CauseCancelled:
		f.Cause = CauseTrap
	}
	return f
}
