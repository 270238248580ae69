package guest

import "github.com/hookhost/hookhost/abi"

// State is what this stage keeps from one hook to another. The host holds it
// and frees it with the operation or the run.
type State struct {
	border border
	scope  int32
}

// Op is the state of the operation: this model call, this tool call, this
// agent.
func (c *Call) Op() State { return State{c.border, abi.ScopeOp} }

// Run is the state of the run.
func (c *Call) Run() State { return State{c.border, abi.ScopeRun} }

// Get reads a value. One that was never set is not found, which is not the
// same as empty.
func (s State) Get(key string) (value string, found bool) {
	value, err := readString(func(buf []byte) int32 { return s.border.StateGet(s.scope, key, buf) })
	return value, err == nil
}

// Set keeps a value of up to abi.MaxState bytes.
func (s State) Set(key, value string) error { return check(s.border.StateSet(s.scope, key, value)) }

// Delete forgets a value.
func (s State) Delete(key string) error { return check(s.border.StateDel(s.scope, key)) }

// Add adds to a counter, which starts at 0, and returns its sum.
func (s State) Add(key string, delta int64) (int64, error) {
	return readInt64(func(out []byte) int32 { return s.border.StateAdd(s.scope, key, delta, out) })
}
