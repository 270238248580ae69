//go:build wasip1

// The guest of Extism, on the functions of its kernel. Input and output are
// copied in words of eight bytes, as its own kits do.
package main

import (
	"encoding/binary"

	"github.com/hookhost/hookhost/bench/work"
)

func main() {}

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u64
func inputWord(at uint64) uint64

//go:wasmimport extism:host/env input_load_u8
func inputByte(at uint64) uint32

//go:wasmimport extism:host/env alloc
func alloc(size uint64) uint64

//go:wasmimport extism:host/env store_u64
func storeWord(at, word uint64)

//go:wasmimport extism:host/env store_u8
func storeByte(at uint64, b uint32)

//go:wasmimport extism:host/env output_set
func outputSet(at, size uint64)

//go:wasmexport verdict
func verdict() int32 { return perform(work.Verdict) }

//go:wasmexport mask
func mask() int32 { return perform(work.Mask) }

func perform(do func(string) string) int32 {
	write(do(read()))
	return 0
}

func read() string {
	size := inputLength()
	text := make([]byte, size)
	at := uint64(0)
	for ; at+8 <= size; at += 8 {
		binary.LittleEndian.PutUint64(text[at:], inputWord(at))
	}
	for ; at < size; at++ {
		text[at] = byte(inputByte(at))
	}
	return string(text)
}

func write(text string) {
	out := alloc(uint64(len(text)))
	at := 0
	for ; at+8 <= len(text); at += 8 {
		storeWord(out+uint64(at), binary.LittleEndian.Uint64([]byte(text[at:at+8])))
	}
	for ; at < len(text); at++ {
		storeByte(out+uint64(at), uint32(text[at]))
	}
	outputSet(out, uint64(len(text)))
}
