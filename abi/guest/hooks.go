package guest

import "github.com/hookhost/hookhost/abi"

// Hooks are the functions of a guest. A nil one is not asked for.
type Hooks struct {
	// Configure reads the configuration, once for each instance, before any
	// other hook. What it does not like it rejects.
	Configure func(*Config)

	OnUserMessage func(*Call) Verdict
	BeforeRun     func(*Call) Verdict
	AfterRun      func(*Call) Verdict
	OnEvent       func(*Call) Verdict
	BeforeAgent   func(*Call) Verdict
	AfterAgent    func(*Call) Verdict
	BeforeModel   func(*Call) Verdict
	OnModelChunk  func(*Call) Verdict
	AfterModel    func(*Call) Verdict
	OnModelError  func(*Call) Verdict
	BeforeTool    func(*Call) Verdict
	AfterTool     func(*Call) Verdict
	OnToolError   func(*Call) Verdict
	Close         func(*Call) Verdict
}

var registered Hooks

// Register sets the hooks of this module. It is called once, from init.
func Register(hooks Hooks) { registered = hooks }

// Registered returns the hooks of this module.
func Registered() Hooks { return registered }

// at returns the function for a hook point, nil when there is none.
func (h *Hooks) at(hook abi.Hook) func(*Call) Verdict {
	switch hook {
	case abi.OnUserMessage:
		return h.OnUserMessage
	case abi.BeforeRun:
		return h.BeforeRun
	case abi.AfterRun:
		return h.AfterRun
	case abi.OnEvent:
		return h.OnEvent
	case abi.BeforeAgent:
		return h.BeforeAgent
	case abi.AfterAgent:
		return h.AfterAgent
	case abi.BeforeModel:
		return h.BeforeModel
	case abi.OnModelChunk:
		return h.OnModelChunk
	case abi.AfterModel:
		return h.AfterModel
	case abi.OnModelError:
		return h.OnModelError
	case abi.BeforeTool:
		return h.BeforeTool
	case abi.AfterTool:
		return h.AfterTool
	case abi.OnToolError:
		return h.OnToolError
	case abi.Close:
		return h.Close
	}
	return nil
}

// abi is the value of the export hookhost_abi_1: the hooks wanted, and no
// feature required.
func (h *Hooks) abi() uint64 {
	var wanted abi.HookSet
	for hook := abi.OnUserMessage; hook <= abi.Close; hook++ {
		if h.at(hook) != nil {
			wanted |= abi.SetOf(hook)
		}
	}
	return uint64(wanted)
}

// call is the export hookhost_call. A hook that was never asked for gets 0,
// which is no verdict.
func (h *Hooks) call(b border, hook abi.Hook) uint64 {
	f := h.at(hook)
	if f == nil {
		return 0
	}
	return uint64(f(&Call{border: b, hook: hook}))
}

// configure is the export hookhost_configure.
func (h *Hooks) configure(b border) int32 {
	if h.Configure == nil {
		return 0
	}
	c := &Config{border: b}
	h.Configure(c)
	if c.rejected {
		return 1
	}
	return 0
}
