package hostfn

import (
	"fmt"
	"runtime/debug"

	"github.com/hookhost/hookhost/abi"
)

// Function is one import with what stands behind it.
type Function struct {
	abi.Import
	// Call takes the arguments from the stack and leaves the result there. It
	// never panics.
	Call func(c *Call, m Memory, stack []uint64)
}

// Table has every function of the ABI.
func Table() []Function {
	imports := abi.Imports()
	table := make([]Function, len(imports))
	for i, imp := range imports {
		run := adapters[imp.Module+"."+imp.Name]
		table[i] = Function{Import: imp, Call: func(c *Call, m Memory, stack []uint64) {
			stack[0] = uint64(uint32(guarded(c, imp, run, &args{mem: m, stack: stack})))
		}}
	}
	return table
}

// guarded turns a panic of the host's own into a code: a guest can handle a
// code, it cannot handle being unwound from outside.
func guarded(c *Call, imp abi.Import, run adapter, a *args) (code abi.Code) {
	defer func() {
		if p := recover(); p != nil {
			c.services.logger().Error("host function panicked", "stage", c.stage.Name,
				"function", imp.Module+"."+imp.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			code = abi.Unavailable
		}
	}()
	return run(c, a)
}

type adapter func(c *Call, a *args) int32

var adapters = map[string]adapter{
	"hookhost.head": func(c *Call, a *args) int32 {
		out := a.out()
		return a.then(func() int32 { return c.Head(out) })
	},
	"hookhost.text": func(c *Call, a *args) int32 {
		field, out := a.i32(), a.out()
		return a.then(func() int32 { return c.Text(field, out) })
	},
	"hookhost.leaf": func(c *Call, a *args) int32 {
		index, out := a.i32(), a.out()
		return a.then(func() int32 { return c.Leaf(index, out) })
	},
	"hookhost.leaf_path": func(c *Call, a *args) int32 {
		index, out := a.i32(), a.out()
		return a.then(func() int32 { return c.LeafPath(index, out) })
	},
	"hookhost.leaf_read": func(c *Call, a *args) int32 {
		index, offset, out := a.i32(), a.i32(), a.out()
		return a.then(func() int32 { return c.LeafRead(index, offset, out) })
	},
	"hookhost.leaf_splice": func(c *Call, a *args) int32 {
		index, start, end, text := a.i32(), a.i32(), a.i32(), a.value()
		return a.then(func() int32 { return c.LeafSplice(index, start, end, text) })
	},
	"hookhost.leaf_hold": func(c *Call, a *args) int32 {
		return c.LeafHold(a.i32(), a.i32())
	},
	"hookhost.get": func(c *Call, a *args) int32 {
		pointer, out := a.key(), a.out()
		return a.then(func() int32 { return c.Get(pointer, out) })
	},
	"hookhost.edit": func(c *Call, a *args) int32 {
		op, pointer, json := a.i32(), a.key(), a.value()
		return a.then(func() int32 { return c.Edit(op, pointer, json) })
	},
	"hookhost.answer": func(c *Call, a *args) int32 {
		kind, value := a.i32(), a.value()
		return a.then(func() int32 { return c.Answer(kind, value) })
	},
	"hookhost.refuse": func(c *Call, a *args) int32 {
		code, text, retry := a.key(), a.value(), a.i64()
		return a.then(func() int32 { return c.Refuse(code, text, retry) })
	},
	"hookhost.state_get": func(c *Call, a *args) int32 {
		scope, key, out := a.i32(), a.key(), a.out()
		return a.then(func() int32 { return c.StateGet(scope, key, out) })
	},
	"hookhost.state_set": func(c *Call, a *args) int32 {
		scope, key, value := a.i32(), a.key(), a.value()
		return a.then(func() int32 { return c.StateSet(scope, key, value) })
	},
	"hookhost.state_del": func(c *Call, a *args) int32 {
		scope, key := a.i32(), a.key()
		return a.then(func() int32 { return c.StateDel(scope, key) })
	},
	"hookhost.state_add": func(c *Call, a *args) int32 {
		scope, key, delta, out := a.i32(), a.key(), a.i64(), a.out()
		return a.then(func() int32 { return c.StateAdd(scope, key, delta, out) })
	},
	"hookhost.config": func(c *Call, a *args) int32 {
		key, out := a.key(), a.out()
		return a.then(func() int32 { return c.Config(key, out) })
	},
	"hookhost.config_key": func(c *Call, a *args) int32 {
		index, out := a.i32(), a.out()
		return a.then(func() int32 { return c.ConfigKey(index, out) })
	},
	"hookhost.note": func(c *Call, a *args) int32 {
		key, value := a.key(), a.value()
		return a.then(func() int32 { return c.Note(key, value) })
	},
	"hookhost.log": func(c *Call, a *args) int32 {
		level, text := a.i32(), a.value()
		return a.then(func() int32 { return c.Log(level, text) })
	},
	"hookhost.reject": func(c *Call, a *args) int32 {
		key, text := a.key(), a.value()
		return a.then(func() int32 { return c.Reject(key, text) })
	},

	"hookhost_limit.admit": func(c *Call, a *args) int32 {
		names, out := a.value(), a.out()
		return a.then(func() int32 { return c.LimitAdmit(names, out) })
	},
	"hookhost_limit.take": func(c *Call, a *args) int32 {
		name, cost, out := a.key(), a.i64(), a.out()
		return a.then(func() int32 { return c.LimitTake(name, cost, out) })
	},
	"hookhost_limit.settle": func(c *Call, a *args) int32 {
		return c.LimitSettle(a.i64(), a.i64())
	},
	"hookhost_limit.release": func(c *Call, a *args) int32 {
		return c.LimitRelease(a.i64())
	},

	"hookhost_usage.record": func(c *Call, _ *args) int32 {
		return c.UsageRecord()
	},
	"hookhost_usage.add": func(c *Call, a *args) int32 {
		name, delta := a.key(), a.i64()
		return a.then(func() int32 { return c.UsageAdd(name, delta) })
	},
	"hookhost_usage.sum": func(c *Call, a *args) int32 {
		name, out := a.key(), a.out()
		return a.then(func() int32 { return c.UsageSum(name, out) })
	},

	"hookhost_kv.get": func(c *Call, a *args) int32 {
		name, key, out := a.key(), a.key(), a.out()
		return a.then(func() int32 { return c.KVGet(name, key, out) })
	},
	"hookhost_kv.put": func(c *Call, a *args) int32 {
		name, key, value, ttl := a.key(), a.key(), a.value(), a.i64()
		return a.then(func() int32 { return c.KVPut(name, key, value, ttl) })
	},

	"hookhost_claim.claim": func(c *Call, a *args) int32 {
		name, key, ttl, out := a.key(), a.key(), a.i64(), a.out()
		return a.then(func() int32 { return c.Claim(name, key, ttl, out) })
	},
	"hookhost_claim.renew": func(c *Call, a *args) int32 {
		name, key, token, ttl := a.key(), a.key(), a.i64(), a.i64()
		return a.then(func() int32 { return c.ClaimRenew(name, key, token, ttl) })
	},
	"hookhost_claim.end": func(c *Call, a *args) int32 {
		name, key, token, result, retention := a.key(), a.key(), a.i64(), a.value(), a.i64()
		return a.then(func() int32 { return c.ClaimEnd(name, key, token, result, retention) })
	},
	"hookhost_claim.result": func(c *Call, a *args) int32 {
		name, key, out := a.key(), a.key(), a.out()
		return a.then(func() int32 { return c.ClaimResult(name, key, out) })
	},

	"hookhost_secret.hmac_sha256": func(c *Call, a *args) int32 {
		name, data, out := a.key(), a.value(), a.out()
		return a.then(func() int32 { return c.HMACSHA256(name, data, out) })
	},
}
