// Package chain runs stages in the order of the manifest, under their roles
// and failure policies, and sees to it that each stage that entered an
// operation is closed exactly once. It knows abi and nothing else: order and
// policy are tested with plain Go stages.
package chain

import (
	"context"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Stage is one hook in the chain, whatever it is made of. Call may be entered
// by many goroutines at once.
type Stage interface {
	// Hooks are the points that the stage wants to be called at.
	Hooks() abi.HookSet
	// Call runs the stage once. An error is a failure of the stage, never a
	// denial; a *Failure says its cause, any other error counts as a trap.
	Call(ctx context.Context, ev *abi.Event) (abi.Verdict, error)
	// Close frees what the stage holds. No Call is running any more.
	Close(ctx context.Context) error
}

// Spec is what the manifest says about one stage.
type Spec struct {
	Name    string
	Role    Role
	Mode    Mode
	Hooks   abi.HookSet // what the stage may see of what it wants; 0 is all
	Apps    []string    // globs as in path.Match; none is all
	Agents  []string
	Tools   []string
	Models  []string
	Timeout time.Duration // of one call, the wait for an instance included

	OnError     Policy // trap, time, memory, bad verdict, pool full, fail
	OnLoadError Policy
	OnStore     Policy
	Refusal     string // what is read when the stage fails closed
}

// Role bounds what a stage may answer.
type Role uint8

// The roles.
const (
	Observer    Role = 1 + iota // may only continue
	Transformer                 // may amend
	Responder                   // may also respond and wait
)

// Mode says what becomes of a stage's verdicts.
type Mode uint8

// The modes.
const (
	Enforce Mode = 1 + iota
	Shadow       // decide, count and log; drop amends, waits and answers
	Off
)

// Policy says what a failure of the stage does.
type Policy uint8

// The policies.
const (
	Open   Policy = 1 + iota // skip this stage alone
	Closed                   // answer with the stage's refusal
	Local                    // for a store that is away: a share of the limit in this process, else as Open
)

// Cause says why a stage failed.
type Cause uint8

// The causes.
const (
	CauseTrap       Cause = 1 + iota // the guest trapped or exited
	CauseDeadline                    // out of time
	CauseMemory                      // out of memory
	CauseBadVerdict                  // no verdict, one above its role, or not of this hook
	CausePoolFull                    // no instance came free in time
	CauseFail                        // the stage said that it could not decide
	CauseLoad                        // the module did not load
	CauseStore                       // the store was away
	CauseCancelled                   // the caller went away while the stage ran
	CauseDepth                       // calls nested too deep
	CauseHostCalls                   // too many calls of host functions
)
