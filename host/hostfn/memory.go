package hostfn

import (
	"unicode/utf8"

	"github.com/hookhost/hookhost/abi"
)

// Memory is a guest's linear memory. Read gives a view of it, which writes
// through, or false where the range is not inside.
type Memory interface {
	Read(offset, n uint32) ([]byte, bool)
}

// args takes the arguments of one call off the stack, in their order. The
// first one that is wrong decides the code and the function is not run.
//
// What comes in is copied before anything is written, so it does not matter
// whether a guest lets its buffers overlap.
type args struct {
	mem   Memory
	stack []uint64
	code  abi.Code
}

func (a *args) i64() int64 {
	v := a.stack[0]
	a.stack = a.stack[1:]
	return int64(v)
}

func (a *args) i32() int32 { return int32(uint32(a.i64())) }

// view reads a pointer and a length.
func (a *args) view(longest uint32) []byte {
	offset, n := uint32(a.i32()), uint32(a.i32())
	if a.code != abi.OK || n == 0 {
		return nil
	}
	if n > longest {
		a.code = abi.OverLimit
		return nil
	}
	b, ok := a.mem.Read(offset, n)
	if !ok {
		a.code = abi.BadArgument
	}
	return b
}

// key reads a key, a name or a path.
func (a *args) key() string { return string(a.view(abi.MaxKey)) }

// value reads a text or any bytes.
func (a *args) value() string { return string(a.view(abi.MaxValue)) }

// out is a buffer to write to.
func (a *args) out() []byte { return a.view(1<<32 - 1) }

// then runs f if all the arguments were right.
func (a *args) then(f func() int32) int32 {
	if a.code != abi.OK {
		return a.code
	}
	return f()
}

// fill writes as much of value as buf takes and returns the whole length.
func fill[V string | []byte](buf []byte, value V) int32 {
	if len(value) > abi.MaxValue {
		return abi.OverLimit
	}
	copy(buf, value)
	return int32(len(value))
}

// checkKey bounds what names something: any bytes, at least one.
func checkKey(key string) abi.Code {
	switch {
	case len(key) > abi.MaxKey:
		return abi.OverLimit
	case key == "":
		return abi.BadArgument
	}
	return abi.OK
}

// checkText bounds what a guest writes for others to read.
func checkText(text string, longest int) abi.Code {
	switch {
	case len(text) > longest:
		return abi.OverLimit
	case !utf8.ValidString(text):
		return abi.BadArgument
	}
	return abi.OK
}
