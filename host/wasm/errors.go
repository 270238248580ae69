package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookhost/hookhost/chain"
	"github.com/hookhost/hookhost/host/wasm/wasi"
)

// What Load fails with, each wrapped with its detail in a *LoadError.
var (
	ErrNotWasm    = errors.New("not a Wasm module")
	ErrInvalid    = errors.New("invalid Wasm module")
	ErrCommand    = errors.New("a command, which is over when it has started: build it with -buildmode=c-shared, or as a reactor")
	ErrExport     = errors.New("does not export the ABI")
	ErrImport     = errors.New("unknown import")
	ErrNotGranted = errors.New("import not granted")
	ErrFeature    = errors.New("requires features that this host does not have")
	ErrHooks      = errors.New("wants hooks that do not exist")
	ErrMemory     = errors.New("needs more memory than the stage may have")
	ErrStart      = errors.New("did not start")
	ErrUnheld     = errors.New("has state that cannot be put back after a call: take it out, or set isolation = \"none\"")
)

// What a call that did not come to a verdict failed with, inside the
// *chain.Failure.
var (
	ErrDeadline    = errors.New("out of time")
	ErrCancelled   = errors.New("the caller went away")
	ErrTooDeep     = errors.New("calls nested too deep")
	ErrOutOfMemory = errors.New("out of memory")
	ErrHostCalls   = errors.New("too many calls of host functions")
	ErrTrap        = errors.New("trap")
	ErrResting     = errors.New("the stage rests after a crash")
)

// LoadError says which stage's module did not load.
type LoadError struct {
	Stage string
	Err   error
}

func (e *LoadError) Error() string { return fmt.Sprintf("stage[%s] module: %v", e.Stage, e.Err) }

// Unwrap gives the reason.
func (e *LoadError) Unwrap() error { return e.Err }

// RejectedError is the guest's own word on its configuration. A *LoadError
// wraps it.
type RejectedError struct {
	Key  string // dotted; empty for the whole
	Text string
}

func (e *RejectedError) Error() string {
	if e.Key == "" {
		return "configuration rejected: " + e.Text
	}
	return fmt.Sprintf("configuration rejected: %s: %s", e.Key, e.Text)
}

// trapError describes what ended a guest from inside: the kind of trap and the
// functions it happened in, which are constant for a module. Nothing that the
// guest computed or wrote gets into it.
type trapError struct{ text string }

func (e *trapError) Error() string { return e.text }

// Unwrap gives ErrTrap.
func (e *trapError) Unwrap() error { return ErrTrap }

func trap(err error) error {
	if exit := (*wasi.Exit)(nil); errors.As(err, &exit) {
		return &exitError{exit}
	}
	const maxFrames = 6
	lines := strings.Split(err.Error(), "\n")
	text := strings.TrimPrefix(lines[0], "wasm error: ")
	if len(lines) > 2 {
		frames := lines[2:min(len(lines), 2+maxFrames)]
		for i, frame := range frames {
			frames[i], _, _ = strings.Cut(strings.TrimLeft(frame, "\t ."), "(")
		}
		text += " in " + strings.Join(frames, " < ")
	}
	return &trapError{text}
}

// exitError is a trap that the guest asked for.
type exitError struct{ exit *wasi.Exit }

func (e *exitError) Error() string { return e.exit.Error() }

// Unwrap gives ErrTrap and the exit.
func (e *exitError) Unwrap() []error { return []error{ErrTrap, e.exit} }

// stackOverflow reports whether the engine's own stack was used up. The error
// is not exported; it comes as it is, and with a trace around it.
func stackOverflow(err error) bool {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimPrefix(first, "wasm error: ") == "stack overflow"
}

// failure finds the cause of a call that did not return. refused says that the
// guest did not get the memory it asked for.
func failure(err error, refused, storeAway bool) *chain.Failure {
	switch {
	case errors.Is(err, ErrCancelled):
		return &chain.Failure{Cause: chain.CauseCancelled, Err: fmt.Errorf("%w: %w", ErrCancelled, context.Canceled)}
	case errors.Is(err, ErrDeadline) && storeAway:
		return &chain.Failure{Cause: chain.CauseStore, Err: fmt.Errorf("%w after the store was unavailable", ErrDeadline)}
	case errors.Is(err, ErrDeadline):
		return &chain.Failure{Cause: chain.CauseDeadline, Err: ErrDeadline}
	case errors.Is(err, ErrTooDeep), stackOverflow(err):
		return &chain.Failure{Cause: chain.CauseDepth, Err: ErrTooDeep}
	case errors.Is(err, ErrHostCalls):
		return &chain.Failure{Cause: chain.CauseHostCalls, Err: ErrHostCalls}
	case refused:
		return &chain.Failure{Cause: chain.CauseMemory, Err: fmt.Errorf("%w: %w", ErrOutOfMemory, trap(err))}
	}
	return &chain.Failure{Cause: chain.CauseTrap, Err: trap(err)}
}
