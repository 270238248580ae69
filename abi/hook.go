// Package abi is the contract between the host and its hooks: the names, the
// packed values and the types that both sides share. README.md in this folder
// is the specification; a guest in any language can be written from it.
//
// The package depends on nothing but a few leaf packages of the standard
// library, because guests link it: no fmt, no reflect, no encoding/json.
package abi

// Version is the number of the ABI. A guest of this version exports
// hookhost_abi_1.
const Version = 1

// Hook names one point at which stages run. Its number is part of the ABI.
type Hook uint8

// The hook points. Zero is no hook, so that a forgotten value is never one.
const (
	OnUserMessage Hook = 1 + iota
	BeforeRun
	AfterRun
	OnEvent
	BeforeAgent
	AfterAgent
	BeforeModel
	OnModelChunk
	AfterModel
	OnModelError
	BeforeTool
	AfterTool
	OnToolError
	Close
	Configure // only host functions see it; it has an export of its own
)

var hookNames = [...]string{
	OnUserMessage: "on_user_message",
	BeforeRun:     "before_run",
	AfterRun:      "after_run",
	OnEvent:       "on_event",
	BeforeAgent:   "before_agent",
	AfterAgent:    "after_agent",
	BeforeModel:   "before_model",
	OnModelChunk:  "on_model_chunk",
	AfterModel:    "after_model",
	OnModelError:  "on_model_error",
	BeforeTool:    "before_tool",
	AfterTool:     "after_tool",
	OnToolError:   "on_tool_error",
	Close:         "close",
	Configure:     "configure",
}

// String returns the hook's name as it stands in manifests and traces.
func (h Hook) String() string {
	if h == 0 || int(h) >= len(hookNames) {
		return "hook?"
	}
	return hookNames[h]
}

// Hooks lists the points that a stage can ask for, in the order of their
// numbers.
func Hooks() []Hook {
	all := make([]Hook, 0, Close)
	for h := OnUserMessage; h <= Close; h++ {
		all = append(all, h)
	}
	return all
}

// ParseHook finds the hook with this name among those a stage can ask for.
func ParseHook(name string) (Hook, bool) {
	for h := OnUserMessage; h <= Close; h++ {
		if hookNames[h] == name {
			return h, true
		}
	}
	return 0, false
}

// HookSet is a set of hooks: bit n stands for the hook with number n.
type HookSet uint32

// AllHooks has every hook that a stage can ask for.
const AllHooks HookSet = 1<<(Close+1) - 2

// SetOf makes a set.
func SetOf(hooks ...Hook) HookSet {
	var s HookSet
	for _, h := range hooks {
		s |= 1 << h
	}
	return s
}

// Has reports whether h is in the set.
func (s HookSet) Has(h Hook) bool { return s&(1<<h) != 0 }

// Operation is the kind of thing that hooks come in pairs around.
type Operation uint8

// The operations, from the outermost to the innermost.
const (
	OpRun Operation = 1 + iota
	OpAgent
	OpModel
	OpTool
)

var operationNames = [...]string{OpRun: "run", OpAgent: "agent", OpModel: "model", OpTool: "tool"}

func (o Operation) String() string {
	if o == 0 || int(o) >= len(operationNames) {
		return "operation?"
	}
	return operationNames[o]
}

// Operation tells which kind of operation a hook belongs to. Close belongs to
// the one that is closed, which its event names.
func (h Hook) Operation() Operation {
	switch h {
	case BeforeAgent, AfterAgent:
		return OpAgent
	case BeforeModel, OnModelChunk, AfterModel, OnModelError:
		return OpModel
	case BeforeTool, AfterTool, OnToolError:
		return OpTool
	default:
		return OpRun
	}
}
