package hostfn_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
)

// memory is a guest's, as the table sees it.
type memory []byte

func (m memory) Read(offset, n uint32) ([]byte, bool) {
	if uint64(offset)+uint64(n) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+n : offset+n], true
}

func function(t testing.TB, module, name string) hostfn.Function {
	for _, f := range hostfn.Table() {
		if f.Module == module && f.Name == name {
			return f
		}
	}
	require.Fail(t, "no such function", "%s.%s", module, name)
	return hostfn.Function{}
}

func callWith(f hostfn.Function, c *hostfn.Call, m memory, args ...uint64) abi.Code {
	stack := append([]uint64{}, args...)
	if len(stack) == 0 {
		stack = []uint64{0}
	}
	f.Call(c, m, stack)
	return abi.Code(int32(uint32(stack[0])))
}

func TestEveryImportDoesSomething(t *testing.T) {
	grants := []string{"usage:read", "usage:write", "kv:k", "claim:k", "secret:k", "limit:k"}
	for _, f := range hostfn.Table() {
		t.Run(f.Module+"."+f.Name, func(t *testing.T) {
			b := newBench(t, grants...)
			for _, hook := range append(abi.Hooks(), abi.Configure) {
				c := b.at(hook).call()
				if hook == abi.Configure {
					c = b.services.NewCall(t.Context(), b.stage, nil)
				}
				code := callWith(f, c, make(memory, 64), make([]uint64, len(f.Params))...)
				if !f.Hooks.Has(hook) {
					assert.Equal(t, abi.NotAtThisHook, code, "%s", hook)
				}
			}
		})
	}
}

func TestPointersOutsideMemoryAreBadArguments(t *testing.T) {
	b := newBench(t, "kv:cache")
	c, m := b.call(), make(memory, 4<<20)
	copy(m, "cache/a")
	get, kv := function(t, "hookhost", "get"), function(t, "hookhost_kv", "get")
	assert.Equal(t, abi.BadArgument, callWith(get, c, m, 0xffff_fff0, 10, 0, 10))
	assert.Equal(t, abi.BadArgument, callWith(get, c, m, 5, 2, 4<<20, 1))
	assert.Equal(t, abi.BadArgument, callWith(get, c, m, 5, 2, 1, 0xffff_ffff))
	assert.Equal(t, abi.OverLimit, callWith(kv, c, m, 0, 5, 0, 1<<20, 100, 8), "a key of 1 MiB")
	assert.Equal(t, abi.NotFound, callWith(kv, c, m, 0, 5, 6, 1, 0xffff_fff0, 0), "nothing is written to a buffer of no length")
	assert.EqualValues(t, 17, callWith(get, c, m, 5, 2, 6, 100), "in and out may overlap")
	assert.Equal(t, "\"Gr\u00fc\u00dfe an alle\"", string(m[6:6+17]))
}

func TestStateAddThroughMemory(t *testing.T) {
	b := newBench(t)
	m := make(memory, 64)
	copy(m, "n")
	add := function(t, "hookhost", "state_add")
	require.EqualValues(t, 8, callWith(add, b.call(), m, abi.ScopeRun, 0, 1, 5, 8, 8))
	assert.EqualValues(t, 5, binary.LittleEndian.Uint64(m[8:]))
}
