package wasm

import "github.com/tetratelabs/wazero/experimental"

// linear is the memory of one instance. It grows up to its limit and remembers
// when it was asked for more.
type linear struct {
	bytes   []byte
	limit   uint64
	refused bool
}

var _ experimental.LinearMemory = (*linear)(nil)

// Allocate makes the memory itself: an instance has one.
func (l *linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate gives nil over the limit, which the guest sees as a memory.grow
// that failed.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.limit {
		l.refused = true
		return nil
	}
	if size > uint64(cap(l.bytes)) {
		grown := make([]byte, size, min(l.limit, max(size, 2*uint64(cap(l.bytes)))))
		copy(grown, l.bytes)
		l.bytes = grown
	}
	l.bytes = l.bytes[:size]
	return l.bytes
}

// Free lets go of the memory.
func (l *linear) Free() { l.bytes = nil }
