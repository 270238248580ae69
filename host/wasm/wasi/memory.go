package wasi

import "encoding/binary"

// guest is the memory of a guest as the functions use it.
type guest struct{ Memory }

// out is a place of a fixed size to write a result to.
func (g guest) out(pointer uint64, size uint32) ([]byte, errno) {
	b, inside := g.Read(uint32(pointer), size)
	if !inside {
		return nil, fault
	}
	return b, ok
}

// list is a list of records of the same size.
func (g guest) list(pointer uint64, count, size uint32) ([]byte, errno) {
	return g.out(pointer, count*size)
}

var little = binary.LittleEndian

// maxList bounds the lists that a guest passes, as IOV_MAX does elsewhere.
const maxList = 1024

// vectors reads the buffers that a list of pointers and lengths tells.
func (g guest) vectors(pointer, count uint64) ([][]byte, errno) {
	n := uint32(count)
	if n > maxList {
		return nil, invalid
	}
	list, err := g.list(pointer, n, 8)
	if err != ok {
		return nil, err
	}
	buffers := make([][]byte, n)
	for at := range buffers {
		record := list[8*at:]
		b, inside := g.Read(little.Uint32(record), little.Uint32(record[4:]))
		if !inside {
			return nil, fault
		}
		buffers[at] = b
	}
	return buffers, ok
}
