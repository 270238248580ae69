package chain

import "github.com/hookhost/hookhost/abi"

// Closed reports whether the operation is over.
func (op *Op) Closed() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.closed
}

// Refused reports whether the operation was refused, by a stage, by the host
// or by a failure that closed it.
func (op *Op) Refused() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.closed && op.reason == abi.ReasonRefused
}
