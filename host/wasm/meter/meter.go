// Package meter rewrites a Wasm module so that whoever runs it can stop it,
// count what it does and put it back to an earlier state. The README has the
// rules, the costs and the proofs.
package meter

import (
	"errors"
	"fmt"
)

// Version is part of every key under which rewritten modules are kept: it is
// raised when the output for some module changes.
const Version = "4"

// What a rewritten module imports and exports. A module that uses these names
// itself is refused.
const (
	// Module is the import module of Tick and Deep.
	Module = "hookhost_meter"
	// Tick is imported as (i64) -> (i64). It is called when the slice of fuel
	// is used up, gets what is left of it, which is below zero, and gives the
	// next slice. It does not return when the call is over.
	Tick = "tick"
	// Deep is imported as () -> (). It is called when the depth is used up and
	// does not return.
	Deep = "deep"
	// Fuel is exported, a mutable i64: what is left of the slice. It is zero
	// in a new instance.
	Fuel = "hookhost_meter.fuel"
	// Depth is exported, a mutable i32: what is left of the depth, in units of
	// some 64 bytes of native stack. It is zero in a new instance and has to be
	// set before each call: a call that trapped has not given back what it took.
	Depth = "hookhost_meter.depth"
	// Start is exported as () -> (). It does what instantiation would have done
	// last: it copies the active data segments into the memory and runs the
	// start function.
	Start = "hookhost_meter.start"
	// GlobalPrefix and an index is the export of a mutable global.
	GlobalPrefix = "hookhost_meter.global."

	reserved = "hookhost_meter."
)

// Rewritten is a module under the meter.
type Rewritten struct {
	Module []byte
	// Globals are the export names of the mutable globals, in their order,
	// which together with the memory are the state of an instance.
	Globals []string
	// Tables and Elements are how many tables there are, and how many elements
	// they have together to begin with; Variables is how many globals there
	// are. Every instance has memory for all of them.
	Tables, Variables int
	Elements          uint64
	// Unheld says where the module uses state beyond memory and globals, which
	// a snapshot of those two does not hold.
	Unheld []Use
}

// NoFunction is the function of a use that is not in one.
const NoFunction = ^uint32(0)

// Use is one place in a module.
type Use struct {
	What     string // as in the text format, like "table.set"
	Function uint32 // index in the module as it was, or NoFunction
	Offset   int    // in the module as it was, in bytes
}

// The kinds of refusal, for errors.Is.
var (
	ErrMalformed     = errors.New("malformed")
	ErrUnknownOpcode = errors.New("unknown opcode")
	ErrUnsupported   = errors.New("not supported")
	ErrShared        = errors.New("shared memory is not supported")
	ErrReserved      = errors.New("name is reserved")
	ErrTooLarge      = errors.New("too large")
)

// Error is a refusal: what kind, of what, and where in the module.
type Error struct {
	Kind   error
	What   string
	Offset int // bytes
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %v at offset %#x", e.What, e.Kind, e.Offset)
}

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }

// Rewrite gives the module under the meter. It fails with an *Error for what
// it does not know or refuses; what else is wrong with a module stays so, for
// the engine to find.
func Rewrite(module []byte) (*Rewritten, error) { return rewrite(module, omission{}) }

// omission is what is left out of the meter, by tests that want to see that
// they notice.
type omission struct{ fuel, depth bool }

func rewrite(module []byte, omit omission) (rewritten *Rewritten, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			rewritten, err = nil, r
		default:
			panic(r)
		}
	}()
	m := parse(module)
	m.omit = omit
	m.decide()
	return m.emit(), nil
}

// refuse ends a rewrite; Rewrite recovers it.
func refuse(kind error, offset int, format string, args ...any) {
	panic(&Error{Kind: kind, What: fmt.Sprintf(format, args...), Offset: offset})
}
