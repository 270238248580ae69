package hostfn

import (
	"encoding/binary"

	"github.com/hookhost/hookhost/abi"
)

// scope finds the operation or the run whose state is meant.
func (c *Call) scope(function string, scope int32, key string) (abi.Scope, abi.Code) {
	if code := firstOf(c.here(function), checkKey(key)); code != abi.OK {
		return nil, code
	}
	switch scope {
	case abi.ScopeOp:
		return c.ev.Op, abi.OK
	case abi.ScopeRun:
		return c.ev.Run, abi.OK
	}
	return nil, abi.BadArgument
}

// StateGet reads a value of this stage in the operation or the run.
func (c *Call) StateGet(scope int32, key string, buf []byte) int32 {
	s, code := c.scope("hookhost.state_get", scope, key)
	if code != abi.OK {
		return code
	}
	value, found := s.Get(c.stage.Name, key)
	if !found {
		return abi.NotFound
	}
	return fill(buf, value)
}

// StateSet keeps a value for later hooks of the operation or the run.
func (c *Call) StateSet(scope int32, key, value string) int32 {
	s, code := c.scope("hookhost.state_set", scope, key)
	if code != abi.OK {
		return code
	}
	if len(value) > abi.MaxState || s.Set(c.stage.Name, key, []byte(value)) != nil {
		return abi.OverLimit
	}
	return abi.OK
}

// StateDel forgets a value. What is not there is no error.
func (c *Call) StateDel(scope int32, key string) int32 {
	s, code := c.scope("hookhost.state_del", scope, key)
	if code != abi.OK {
		return code
	}
	s.Delete(c.stage.Name, key)
	return abi.OK
}

// StateAdd adds to a number and writes the new one, an i64.
func (c *Call) StateAdd(scope int32, key string, delta int64, out []byte) int32 {
	s, code := c.scope("hookhost.state_add", scope, key)
	if code != abi.OK {
		return code
	}
	if len(out) < 8 {
		return abi.BadArgument
	}
	sum, err := s.Add(c.stage.Name, key, delta)
	if err != nil {
		return abi.WrongType
	}
	return fill(out, binary.LittleEndian.AppendUint64(nil, uint64(sum)))
}
