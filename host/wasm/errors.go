package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/hookhost/hookhost/chain"
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

// trap describes what ended a guest from inside: the kind of trap and the
// functions it happened in, which are constant for a module. Nothing that the
// guest computed or wrote gets into it.
func trap(err error) error {
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) {
		return &exitError{exit.ExitCode()}
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
	return errors.New(text)
}

type exitError struct{ code uint32 }

func (e *exitError) Error() string { return fmt.Sprintf("exited with code %d", e.code) }

// failure finds the cause of a call that did not return. caller is the context
// without the stage's own limit.
func failure(caller, limited context.Context, err error, outOfMemory, storeAway bool) *chain.Failure {
	switch {
	case caller.Err() != nil && !errors.Is(caller.Err(), context.DeadlineExceeded):
		return &chain.Failure{Cause: chain.CauseCancelled, Err: caller.Err()}
	case limited.Err() != nil && storeAway:
		return &chain.Failure{Cause: chain.CauseStore, Err: errors.New("out of time after the store was unavailable")}
	case limited.Err() != nil:
		return &chain.Failure{Cause: chain.CauseDeadline, Err: limited.Err()}
	case outOfMemory:
		return &chain.Failure{Cause: chain.CauseMemory, Err: trap(err)}
	}
	return &chain.Failure{Cause: chain.CauseTrap, Err: trap(err)}
}
