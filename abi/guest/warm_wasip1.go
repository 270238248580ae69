package guest

import "runtime"

const (
	// warmHeap is how much a hook can allocate, in bytes, before the memory of
	// its instance has to grow.
	warmHeap = 3 << 20
	// warmSize is up to which size the allocator has room at hand for objects.
	warmSize = 1 << 10
)

// warm makes the heap ready before the host takes its image of the memory,
// which every call begins with. An instance that grows in a call cannot be put
// back to the image: it is thrown away. And what the allocator prepares in a
// call, it would prepare in every call.
func warm() {
	heap := make([]byte, warmHeap)
	runtime.KeepAlive(heap)
	runtime.GC()
	for size := 8; size <= warmSize; size += 8 {
		bytes, pointers = make([]byte, size), make([]*byte, size/4)
	}
	bytes, pointers = nil, nil
}

// Kept in variables, so that they are on the heap.
var (
	bytes    []byte
	pointers []*byte
)
